"""Takes the queue's own tables out of the admin: their rows are code to whoever may write them."""

from django.apps import apps
from django.contrib import admin

for model in apps.get_app_config("django_q").get_models():
    if admin.site.is_registered(model):
        admin.site.unregister(model)
