"""Staff see imports and what became of their rows."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from northwind.imports.models import ImportedRow, ImportJob
from tests.imports.desk import Desk


@pytest.mark.parametrize("name", ["importjob", "importedrow"])
def test_every_list_and_every_row_opens_and_nothing_can_be_changed(desk: Desk, client: Client, name: str) -> None:
    desk.command("tickets", desk.write("subject,priority", ["A", "high"], ["B", "loud"]), code=3)
    client.force_login(User.objects.create_superuser("root"))
    page = client.get(f"/admin/imports/{name}/?tenant__id__exact={desk.tenant.pk}")
    rows = list(page.context["cl"].result_list)
    assert len(rows) == (1 if name == "importjob" else 2)
    for row in rows:
        assert client.get(f"/admin/imports/{name}/{row.pk}/change/").status_code == 200
        assert client.post(f"/admin/imports/{name}/{row.pk}/change/", {"rows_done": 9}).status_code == 403
    assert client.get(f"/admin/imports/{name}/?q=abc").status_code == 200
    assert client.get(f"/admin/imports/{name}/add/").status_code == 403


def test_the_page_of_an_import_leads_to_its_rows(desk: Desk, client: Client) -> None:
    desk.command("tickets", desk.write("subject", ["A"], ["B"]))
    desk.command("tickets", desk.write("subject", ["C"]))
    client.force_login(User.objects.create_superuser("root"))
    with desk.acting():
        job = ImportJob.objects.order_by("id")[0]
        wanted = set(ImportedRow.objects.filter(job=job).values_list("pk", flat=True))
    assert (
        f"/admin/imports/importedrow/?job__id__exact={job.pk}"
        in client.get(f"/admin/imports/importjob/{job.pk}/change/").content.decode()
    )
    page = client.get(f"/admin/imports/importedrow/?job__id__exact={job.pk}")
    assert {row.pk for row in page.context["cl"].result_list} == wanted
