"""The application that a web server such as gunicorn runs."""

import os

from django.core.wsgi import get_wsgi_application

from northwind.database import ensure

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "northwind.settings")
ensure()
application = get_wsgi_application()
