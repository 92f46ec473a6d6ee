"""Every setting of every process, in groups; each one's docstring gives unit, default and why.

A value comes from the built-in default, the TOML file, the environment, or a command-line flag,
the later winning. `cli.configuration` reads them, once, at the front door; everybody else is
handed values.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

_MASK = "********"


class Secret:
    """A text that is never printed: only `reveal` gives it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the one place that needs it."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret('{_MASK}')"

    def __str__(self) -> str:
        return _MASK

    def __format__(self, spec: str) -> str:
        return format(_MASK, spec)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> str:
        raise TypeError("a secret is not pickled")


def _within(default: float, low: float, high: float | None = None) -> Any:
    """A number with bounds, which `cli.configuration` enforces."""
    return field(default=default, metadata={"low": low, "high": high})


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """The process that answers people, programs and agents."""

    host: str = "127.0.0.1"
    """Address to listen on. The loopback by default: showing it to a network is a decision."""
    port: int = _within(8642, 1, 65535)
    """TCP port."""
    public_url: str = ""
    """The address that others reach it at, e.g. `https://verderer.example.com`, for links in
    mails, cookies and redirects. Empty: `http://HOST:PORT`."""
    workers: int = _within(1, 1, 64)
    """Processes that share the port. One serves thousands of requests a second; add more only
    where there are cores to run them."""
    stop_within_s: float = _within(5.0, 0.1, 600.0)
    """Seconds that open requests get to finish when the server stops."""


@dataclass(frozen=True, kw_only=True)
class DatabaseSettings:
    """Where the facts are kept."""

    url: Secret | None = None
    """Address of a PostgreSQL 15 or later, `postgresql://user:password@host/name`. Unset: the
    embedded server in the data folder."""
    direct_url: Secret | None = None
    """Address of the same database past a pooler such as PgBouncer, for news and migrations. Needed
    when `database.url` leads to a pooler in transaction mode. Unset: `database.url`."""
    pool_size: int = _within(8, 2, 200)
    """Most connections of one process. The embedded server takes 100 in all."""


@dataclass(frozen=True, kw_only=True)
class PostgresSettings:
    """The embedded PostgreSQL; of no effect when `database.url` is set."""

    bin: Path | None = None
    """The `bin` folder of another PostgreSQL 15 or later. Unset: the one that came with the
    package."""
    port: int | None = field(default=None, metadata={"low": 1, "high": 65535})
    """Also listen on this port of 127.0.0.1, for tools that cannot use a Unix socket. Unset: the
    socket alone."""


@dataclass(frozen=True, kw_only=True)
class ObjectSettings:
    """Where the bytes are kept: logs, artifacts, models."""

    url: str = ""
    """`s3://bucket/prefix`, or a folder. Empty: `objects` in the data folder."""
    endpoint: str = ""
    """Address of an S3-compatible store. Empty: AWS."""
    region: str = "us-east-1"
    """The store's region; many self-hosted stores take any."""
    access_key: str = ""
    """S3 access key. Empty: the machine's own identity, where the cloud gives one."""
    secret_key: Secret | None = None
    """S3 secret key that belongs to `access_key`."""


@dataclass(frozen=True, kw_only=True)
class SchedulerSettings:
    """The process that places work; several may run, one leads."""

    lease_s: float = _within(2.0, 0.5, 60.0)
    """Seconds until another scheduler takes over from a silent leader. Shorter takes over
    sooner, and makes a slow database look like a dead leader."""
    tick_s: float = _within(1.0, 0.05, 60.0)
    """Seconds between rounds when nothing wakes it: the most that a lost wake-up can cost."""


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """The process beside a cluster."""

    kind: Literal["local", "slurm", "kubernetes"] = "local"
    """What it serves: this machine's own processes, or the cluster of the group `slurm` or
    `kubernetes`."""
    server_url: str = ""
    """Address of the control plane. Empty: the server of the same settings, on this machine."""
    cluster: str = "local"
    """The `cluster_id` that it serves."""
    ca_file: Path | None = None
    """PEM file of the authority that signed the control plane's certificate. Unset: the system's
    authorities."""
    identity_file: Path | None = None
    """File of the agent's own key and credential, which joining makes. Unset:
    `agent/identity.json` in the data folder."""
    join_token: Secret | None = None
    """Joins with it at the first start, where there is no identity yet: for containers."""
    credential_file: Path | None = None
    """File with a credential that never changes, for an agent that has not joined. Unset:
    `agent/credential` in the data folder."""
    spool_dir: Path | None = None
    """Folder of the agent's journal, which must survive restarts. Unset: `agent/spool` in the
    data folder."""
    spool_limit_bytes: int = _within(1 << 28, 1 << 20)
    """Most bytes of one attempt's output that wait on the `local` cluster's disk for an object
    store that is away. A program that writes more is held back for a moment; then its output is
    dropped and the gap is marked."""


@dataclass(frozen=True, kw_only=True)
class LocalClusterSettings:
    """The `local` cluster: steps are plain processes of the agent's own user."""

    enabled: bool | None = None
    """Whether it exists. Unset: under `verderer up` alone, because whoever may submit a pipeline
    runs commands as that user. `false` keeps it away there too."""
    capacity: str = ""
    """What the machine offers instead of all that it has, such as `cpu=4,memory=8Gi`: for several
    agents on one machine. Accelerators are never more than were found."""


@dataclass(frozen=True, kw_only=True)
class SlurmSettings:
    """A Slurm cluster, where `agent.kind` is `slurm`. `docs/slurm.md` explains the whole."""

    shared_dir: Path | None = None
    """Folder that the agent and every node see under the same path, for working directories,
    output and what must survive a restart. It has to belong to this one agent."""
    bin_dir: Path | None = None
    """Folder with `sbatch`, `squeue` and the others. Unset: they are looked for on the PATH."""
    conf: Path | None = None
    """Path of slurm.conf. Unset: `SLURM_CONF`, or what the commands were built with."""
    partition: str = ""
    """Partition that jobs go to, or several with commas. Empty: Slurm's default. Only its nodes
    count as the cluster's."""
    account: str = ""
    """Account that jobs are charged to. Empty: the default of the agent's user."""
    qos: str = ""
    """Quality of service of jobs. Empty: the default."""
    reservation: str = ""
    """Reservation that jobs run in. Empty: none."""
    constraint: str = ""
    """Features that nodes must have, in Slurm's words. Empty: none."""
    choices: str = ""
    """Which of `partition`, `account`, `qos`, `constraint` and `reservation` a step may choose
    itself by a variable such as `VERDERER_SLURM_PARTITION`, with commas. Empty: none, since the
    agent's user may be allowed more than whoever wrote the step."""
    gres: str = "nvidia.com/gpu=gpu"
    """What Slurm calls devices, as `RESOURCE=NAME` or `RESOURCE=NAME:TYPE` with commas, for
    instance `nvidia.com/gpu=gpu:h100,nvidia.com/mig-1g.10gb=gpu:1g.10gb`."""
    python: str = "python3"
    """Python 3.6 or newer on the nodes, which runs the small program that watches a step."""
    poll_s: float = _within(1.0, 0.1, 60.0)
    """Seconds between two looks at our jobs while something changes. All of them are seen by one
    `squeue`; when nothing changes, or when the controller is slow, it is asked less often."""
    command_timeout_s: float = _within(30.0, 1.0, 600.0)
    """Seconds that one of Slurm's commands may take. Longer than `MessageTimeout` in slurm.conf,
    so that Slurm's own answer comes first."""
    submissions_per_s: float = _within(100.0, 0.1, 10_000.0)
    """Most jobs handed in per second, after a burst of as many. A controller that others need
    too takes a few hundred."""


@dataclass(frozen=True, kw_only=True)
class KubernetesSettings:
    """A Kubernetes cluster, where `agent.kind` is `kubernetes`; see `docs/kubernetes.md`."""

    kubeconfig: Path | None = None
    """File that says where the API server is and who the agent is there. Unset: the account of
    the agent's own pod, else `KUBECONFIG`, else `~/.kube/config`."""
    context: str = ""
    """Context of that file. Empty: its current one."""
    namespace: str = "cube-execution"
    """Where the agent keeps its own objects, one for each attempt."""
    identity_secret: str = ""
    """Name of a Secret in that namespace which keeps the agent's key and credential. Empty: a
    file does, `agent.identity_file`."""
    service_account: str = "cube-agent"
    """The agent's own account in that namespace, to which rights in projects' namespaces go."""
    project_prefix: str = "verderer-"
    """Put before a project's name it makes the name of the project's namespace."""
    create_namespaces: bool = True
    """Whether namespaces of projects are made on demand, with account, quota and limits. `false`:
    they are there, and so are the agent's rights in them."""
    project_role: str = "cube-agent-project"
    """ClusterRole that the agent binds to itself in a namespace that it makes. Empty: it has its
    rights otherwise."""
    pod_security: Literal["privileged", "baseline", "restricted"] = "baseline"
    """Pod Security Standard that a namespace made on demand enforces. Under `restricted` images
    must run as another user than root."""
    quota: str = ""
    """Quota of a namespace made on demand, such as `requests.cpu=100,requests.nvidia.com/gpu=8`.
    Empty: none, since the platform counts for itself."""
    default_requests: str = ""
    """What a container gets that asks for nothing, such as `cpu=100m,memory=256Mi`. Empty: none."""
    default_limits: str = ""
    """Limits of a container that names none, such as `memory=4Gi`. Empty: none."""
    image_pull_secrets: str = ""
    """Names of Secrets in projects' namespaces by which images are pulled, with commas."""
    default_image: str = ""
    """Image of steps that name none. Empty: such a step is refused."""
    carrier_image: str = ""
    """Image with the `verderer` command, most simply the agent's own: its containers carry inputs
    and outputs of steps. Empty: steps that declare some are refused."""
    carrier_url: str = ""
    """Address at which pods reach the control plane for addresses of their files. Empty:
    `agent.server_url`."""
    queue: str = ""
    """Name of Kueue's LocalQueue in projects' namespaces, for Jobs to stand in. Without effect
    where the cluster has no Kueue."""
    start_wait_s: float = _within(300.0, 0.0, 86_400.0)
    """Seconds that a container may fail to be made, for want of an image or a Secret, before its
    step fails with what the cluster says."""
    gang_wait_s: float = _within(600.0, 1.0, 86_400.0)
    """Seconds that some replicas of a step may hold their place while others have none, before
    all are let go."""
    writes_per_s: float = _within(300.0, 1.0, 10_000.0)
    """Most requests per second that change something, after a burst of as many."""
    publish_inventory: bool = True
    """Whether the ConfigMap `cluster-info` in `cube-system` is kept true."""


@dataclass(frozen=True, kw_only=True)
class SecuritySettings:
    """Keys and sessions."""

    secret_key: Secret | None = None
    """At least 32 characters of chance, which sign sessions and links; the same for every server
    and scheduler. Unset: `secret.key` in the data folder, made there at the first start unless
    `database.url` is set."""
    session_s: int = _within(14 * 86400, 60)
    """Seconds until a browser's login ends without use. Two weeks by default."""


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """Our own log, on standard error."""

    format: Literal["auto", "json", "text"] = "auto"
    """`text` for people, `json` for machines; `auto` is text on a terminal and JSON elsewhere."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe that is written."""


@dataclass(frozen=True, kw_only=True)
class MetricsSettings:
    """Our own metrics, in Prometheus' text format at `/metrics`."""

    enabled: bool = True
    """Whether the server answers there."""
    token: Secret | None = None
    """What a scraper must send as a bearer token. Unset: anybody who reaches the port may read,
    which is fine on the loopback and on a closed network."""


def _default_data_dir() -> Path:
    return Path("~/.local/share/verderer").expanduser()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All of them."""

    data_dir: Path = field(default_factory=_default_data_dir)
    """Folder of everything that must survive a restart. `~/.local/share/verderer` by default,
    for root too."""
    server: ServerSettings = ServerSettings()
    database: DatabaseSettings = DatabaseSettings()
    postgres: PostgresSettings = PostgresSettings()
    objects: ObjectSettings = ObjectSettings()
    scheduler: SchedulerSettings = SchedulerSettings()
    agent: AgentSettings = AgentSettings()
    local_cluster: LocalClusterSettings = LocalClusterSettings()
    slurm: SlurmSettings = SlurmSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    security: SecuritySettings = SecuritySettings()
    log: LogSettings = LogSettings()
    metrics: MetricsSettings = MetricsSettings()

    @property
    def postgres_dir(self) -> Path:
        """State folder of the embedded PostgreSQL."""
        return self.data_dir / "postgres"

    @property
    def objects_url(self) -> str:
        """`objects.url`, or the local folder that stands for it."""
        return self.objects.url or str(self.data_dir / "objects")

    @property
    def public_url(self) -> str:
        """What a person types to reach the console, without a slash at the end."""
        return (self.server.public_url or self.local_url).rstrip("/")

    @property
    def local_url(self) -> str:
        """How a process of this machine reaches the server."""
        anywhere = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104
        host = anywhere.get(self.server.host, self.server.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server.port}"

    @property
    def agent_server_url(self) -> str:
        """`agent.server_url`, or the server on this machine."""
        return (self.agent.server_url or self.local_url).rstrip("/")

    @property
    def agent_credential_file(self) -> Path:
        return self.agent.credential_file or self.data_dir / "agent" / "credential"

    @property
    def agent_identity_file(self) -> Path:
        return self.agent.identity_file or self.data_dir / "agent" / "identity.json"

    @property
    def agent_spool_dir(self) -> Path:
        return self.agent.spool_dir or self.data_dir / "agent" / "spool"

    def redacted(self) -> dict[str, object]:
        """All values as plain ones, with secrets masked, for `doctor` and bug reports."""
        return _redacted(self)


def _redacted(group: Any) -> dict[str, object]:
    shown: dict[str, object] = {}
    for one in fields(group):
        value = getattr(group, one.name)
        if is_dataclass(value):
            shown[one.name] = _redacted(value)
        else:
            shown[one.name] = str(value) if isinstance(value, Secret | Path) else value
    return shown
