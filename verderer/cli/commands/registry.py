"""Which commands there are, and under which heading help lists them."""

from __future__ import annotations

import typer

from verderer.cli.commands import (
    account,
    artifacts,
    clusters,
    completion,
    logs,
    pipelines,
    projects,
    runs,
    submit,
    tokens,
    users,
    why,
)
from verderer.cli.commands.doctor import command as doctor
from verderer.cli.commands.governance import approvals, project_groups, resource_groups

RUNS = "Runs"
THINGS = "What there is"
ACCOUNT = "You"


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command(rich_help_panel=RUNS)(submit.run)
    app.add_typer(runs.group, name="runs", rich_help_panel=RUNS)
    app.command("watch", rich_help_panel=RUNS)(submit.watch_run)
    app.command(rich_help_panel=RUNS)(why.why)
    app.command(rich_help_panel=RUNS)(logs.logs)
    app.command(rich_help_panel=RUNS)(runs.cancel)
    app.command(rich_help_panel=RUNS)(runs.retry)
    app.command(rich_help_panel=RUNS)(runs.clone)
    app.command(rich_help_panel=RUNS)(artifacts.artifacts)
    app.add_typer(pipelines.group, name="pipelines", rich_help_panel=RUNS)
    app.add_typer(clusters.group, name="clusters", rich_help_panel=THINGS)
    app.add_typer(projects.group, name="projects", rich_help_panel=THINGS)
    app.add_typer(project_groups.group, name="project-groups", rich_help_panel=THINGS)
    app.add_typer(resource_groups.group, name="resource-groups", rich_help_panel=THINGS)
    app.add_typer(approvals.group, name="approvals", rich_help_panel=THINGS)
    app.add_typer(users.group, name="users", rich_help_panel=THINGS)
    app.add_typer(tokens.group, name="tokens", rich_help_panel=ACCOUNT)
    app.command(rich_help_panel=ACCOUNT)(account.login)
    app.command(rich_help_panel=ACCOUNT)(account.logout)
    app.command(rich_help_panel=ACCOUNT)(account.whoami)
    app.command(rich_help_panel=THINGS)(doctor.doctor)
    app.command(rich_help_panel=ACCOUNT)(completion.completion)
