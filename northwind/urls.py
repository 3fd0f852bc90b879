"""Every address of the product; apps' own URL modules are included by name."""

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

from automation.web.home import home

handler400 = "northwind.refusals.bad_request"
urlpatterns = [
    path("", home, name="home"),
    path("t/<slug:tenant_slug>/", include("automation.web.urls")),
    path("accounts/login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
]
