"""Every setting of the deployment, read from the environment in one place."""

from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

import django_stubs_ext
from csp.constants import NONE, SELF

from northwind import database
from northwind.engine_settings import engine_settings
from northwind.environment import Environment
from northwind.logs import configure, logging_settings

BASE_DIR = Path(__file__).resolve().parent.parent
env = Environment()
django_stubs_ext.monkeypatch()  # lets classes such as ModelAdmin[Ticket] name their model, as the type checker wants

# --- The deployment ---------------------------------------------------------------------------------------------------

DEBUG = env.bool("DEBUG", False)
HTTPS = env.bool("HTTPS", False)
# Served in the open, it needs a key of its own; the one here is for a machine's own use only.
SECRET_KEY = env.str("SECRET_KEY") if HTTPS else env.str("SECRET_KEY", "development-only-key-that-no-deployment-uses")
# Fernet keys, newest first, for the secrets of connections; a deployment keeps them apart from the database.
SECRET_ENCRYPTION_KEYS = (
    env.list("SECRET_ENCRYPTION_KEYS")
    if HTTPS
    else env.list("SECRET_ENCRYPTION_KEYS", default=[urlsafe_b64encode(sha256(SECRET_KEY.encode()).digest()).decode()])
)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", 365 * 24 * 3600) if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
if env.bool("BEHIND_PROXY", False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# To be put on the browsers' preload list is a decision about a whole domain, which this product can't take.
SILENCED_SYSTEM_CHECKS = ["security.W021"]

# --- The application --------------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "tenants.apps.StaffAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_q",
    "csp",
    "tenants",
    "automation",
    "northwind",
    "northwind.helpdesk",
    "northwind.crm",
    "northwind.imports",
]
MIDDLEWARE = [
    "northwind.logs.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "tenants.middleware.TenantMiddleware",
    "northwind.refusals.NotThisWayMiddleware",
]
ROOT_URLCONF = "northwind.urls"
WSGI_APPLICATION = "northwind.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- Data -------------------------------------------------------------------------------------------------------------

DATABASES = {"default": env.db_url_config(database.address())}
DATABASES["default"].setdefault("OPTIONS", {})
# A connection whose other end is gone is noticed within seconds, not hours; on a Unix socket these say nothing.
DATABASES["default"]["OPTIONS"] |= {"keepalives_idle": 10, "keepalives_interval": 5, "tcp_user_timeout": 10_000}
if env.bool("DB_POOL", False):  # for web processes only: the workers' forked processes would share its sockets
    DATABASES["default"]["OPTIONS"]["pool"] = {"min_size": 1, "max_size": 8, "timeout": 5}
else:
    DATABASES["default"] |= {"CONN_MAX_AGE": 600, "CONN_HEALTH_CHECKS": True}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- People -----------------------------------------------------------------------------------------------------------

LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

# --- Pages ------------------------------------------------------------------------------------------------------------

STATIC_URL = "static/"
# With a folder that collectstatic filled, files are served from it under names that change with their content.
STATIC_ROOT = env.str("STATIC_ROOT", None)
WHITENOISE_USE_FINDERS = not STATIC_ROOT
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if STATIC_ROOT
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

# --- Mail and logs ----------------------------------------------------------------------------------------------------

vars().update(env.email_url("EMAIL_URL", "consolemail://"))
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.str("DEFAULT_FROM_EMAIL", "northwind@localhost")
LOGGING = logging_settings(as_json=env.str("LOG_FORMAT", "text") == "json", level=env.str("LOG_LEVEL", "INFO"))
configure()

# --- Imports ----------------------------------------------------------------------------------------------------------

IMPORT_REPORTS_DAYS = env.int("IMPORT_REPORTS_DAYS", 90)  # what became of each row can be read for so long

# --- Workers ----------------------------------------------------------------------------------------------------------

WORKERS = env.int("WORKERS", 2)
# Pools beside the shared one, each for a tenant that automates heavily: a cluster run with Q_CLUSTER_NAME=<name>.
POOLS = env.list("POOLS", default=["whale"])
SIZE = {"workers": WORKERS, "queue_limit": WORKERS, "timeout": 660, "retry": 2019, "scheduler": False}
Q_CLUSTER = {
    "name": "northwind",
    "orm": "default",
    **SIZE,
    "ALT_CLUSTERS": dict.fromkeys(POOLS, SIZE),
    "bulk": 1,
    "max_attempts": 1,
    "ack_failures": True,
    "save_limit": -1,
    "catch_up": False,
    "poll": 0.2,
    "guard_cycle": 1,
    "recycle": 1000,
    "max_rss": 300_000,
    "cache": "qstats",
}
vars().update(engine_settings(env, deployed=HTTPS))
