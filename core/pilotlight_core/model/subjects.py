"""Every NATS subject, stream and bucket. Each subject names its region.

pl.{region}.node.{node}.run.{instance}   origin -> agent  Run: a granted call with its input
pl.{region}.node.{node}.ctl        origin -> agent        Cancel, Window
pl.{region}.node.{node}.link.{instance}  gateway -> agent  LinkOffer, until there is a link
pl.{region}.node.{node}.cmd        controller -> agent    commands (request, reply: CommandReply)
pl.{region}.beat.{node}            agent -> all           NodeReport, each second and on change
pl.{region}.node.{node}.ran        agent -> controller   Ran, each second where anything ran
pl.{region}.node.{node}.lock       gateway -> agent      LockPackages, DescribePackages, at a deploy
pl.{region}.gw.{gateway}.locked.{node}  agent -> gateway  PackagesLocked, the answer
pl.{region}.node.{node}.renew      agent -> gateway      RenewNode (request, reply: NodeRenewal)
pl.{region}.node.{node}.secrets    agent -> gateway      SecretsWanted (request, reply: SecretsAnswer)
pl.{region}.node.{node}.erased     agent -> gateway      ErasedWanted (request, reply: ErasedTenants)
pl.{region}.node.{node}.storage    agent -> gateway      StorageWanted (request, reply: StorageAnswer)
pl.{region}.credit.{node}.{version}  agent -> home        Credit: free slots and state of one container
pl.{region}.credits                home -> agents         CreditsWanted
pl.{region}.gw.{gateway}.reply.{node}  agent -> origin    all frames of calls; Credit of a freed slot
pl.{region}.gw.{gateway}.nested.{node}  agent -> origin   AskNested (request, reply: NestedAnswer), LeaveNested
pl.{region}.gw.{gateway}.home      origin -> home         ToHome
pl.{region}.gw.{gateway}.origin    home -> origin         ToOrigin
pl.{region}.gw.{gateway}.link      gateway -> gateway     LinkOffer, until there is a link
pl.{region}.gw.{gateway}.ask       gateway -> gateway     AskCall (request, reply: CallReply)
pl.{region}.gw.{gateway}.events    gateway -> gateway     AskEvents (request, reply: StreamEvents)
pl.{region}.gw.{gateway}.kept      gateway -> gateway     AskKept (request, reply: KeptTold)
pl.{region}.traces                 gateway -> duties      TraceBatch, every other second while calls were kept
pl.{region}.gw.{gateway}.tallies   gateway -> gateway     AskTallies (request, reply: TalliesTold)
pl.{region}.gw.{gateway}.limits    gateway -> limit home  ToLimitHome, Holdings
pl.{region}.gw.{gateway}.allowed   limit home -> gateway  LimitAnswers
pl.{region}.holdings               limit home -> gateways HoldingsWanted
pl.{region}.breakers               home -> gateways       Breakers, each second while any is not closed
pl.{region}.loads                  gateway -> gateways    GatewayLoad, every other second
pl.{region}.explain                gateway -> controller  ExplainPlacement (request, reply: PlacementReply)
pl.{region}.advice                 gateway -> adviser     the same, of a controller that only advises
pl.{region}.stop                   gateway -> controller  StopContainer (request, reply: ContainerStopReply)
pl.{region}.demands.{shard}        home -> controller     Demands, each 250 ms while not empty and on the edge
pl.{region}.demand.{version}       home of 0.1 -> controller  Demand
pl.{region}.shortages              controller -> gateways Shortages, each quarter of a second while any are due
pl.{region}.shortage.{version}     controller -> gateways of 0.1  Shortage
pl.{region}.planned.{gateway}      home -> controller     PlannedStarts, each second while jobs become due soon
pl.{region}.gw.{gateway}.jobs      gateway -> home        AskJob (request, reply: JobPlace)
usage.{region}.{node}.{tenant}     gateway -> USAGE stream  UsageBatch of an agent
usage.{region}.-.{node}            controller -> USAGE stream  Bound, Unbound
logs.{region}.{node}.{tenant}.{app}.{fn}  gateway -> LOGS stream  LogBatch of an agent
jobs.{region}.{shard}.{fn}.{tenant}.{class}  gateway -> JOBS stream  JobsStored; {fn} is a digest
compared.{region}.{tenant}.{app}    gateway -> COMPARED stream  ComparedCalls, of apps with a rollout
events.{region}.{tenant}           controller, gateway -> EVENTS stream  PlatformEvent; {tenant} is "-" for the platform
audit.{region}.{tenant}            gateway -> AUDIT stream  AuditEntry (JSON), before and after each change

All that an agent publishes names its node, and the bus lets it publish under no other (`bus_users`): a receiver
believes a message about a node only from that node's subject (`node_of`).
"""

from __future__ import annotations

from functools import lru_cache
from zlib import crc32

TENANCY_BUCKET = "TENANCY"
"""KV: tenant.*, tier.*, limits.*, key.*, budget.*, credit.*, node.*, join.*, issuer.*, pool.*, launch.*,
session.*"""
REGISTRY_BUCKET = "REGISTRY"
"""KV: app.*.*, share.*.*, scale.*.*.*, rollout.*.*, version.*, curves.*"""
LEASE_BUCKET = "LEASES"
"""KV with TTL: gateway.*, controller, duty.*"""
SHARD_BUCKET = "SHARDS"
"""KV: one key per shard, the gateway that is its home"""
IDEMPOTENCY_BUCKET = "IDEMPOTENCY"
"""KV with TTL: one key per tenant and Idempotency-Key, hashed"""
JOB_BUCKET = "JOBS"
"""KV with TTL: one key per job, {tenant}.{id}"""
BATCH_BUCKET = "BATCHES"
"""KV with TTL: {tenant}.{batch}"""
WEBHOOK_BUCKET = "WEBHOOKS"
"""KV: {tenant}.{webhook}, receivers and their signing secrets"""
DELIVERY_BUCKET = "DELIVERIES"
"""KV with TTL: {tenant}.{webhook}.{delivery}; {tenant}.{webhook}: the webhook's position in the stream of jobs"""
JOB_STREAM = "JOBS"
"""The work queue of jobs that have not ended. It can be rebuilt from their records."""
SHARDS = 64
"""The number of parts of all functions (and limits), each with one home. Fixed, since records are stored under a part's
number."""
LAYOUT_BUCKET = "LAYOUTS"
"""KV: one key per node, the layouts of its GPUs"""
PLATFORM_BUCKET = "PLATFORM"
"""KV: foundation.{region}, the signing key, blob store and ledger that all processes have in common"""
USAGE_STREAM = "USAGE"
LOGS_STREAM = "LOGS"
AUDIT_STREAM = "AUDIT"
"""Who changed what."""
COMPARED_STREAM = "COMPARED"
"""Calls of both sides of rollouts, which the judge folds."""
EVIDENCE_BUCKET = "EVIDENCE"
"""KV: {tenant}.{app}, what the judge has folded of the rollout under way, with its place in that stream"""
EVENTS_STREAM = "EVENTS"
"""What happened, for people."""
BINDING_BUCKET = "BINDINGS"
"""KV: {region}.{node}.{container}, what the controller has bound and not ended"""
BUDGET_BUCKET = "BUDGETS"
"""KV: home.{tenant}, what the home of its limits has taken of its budgets; ledger.{tenant}, what is billed of them"""
SCALING_BUCKET = "SCALING"
"""KV, for a month: {region}.{tenant}.{app}.{function}, what a controller remembers of a function's past"""
SECRET_BUCKET = "SECRETS"  # noqa: S105 - a name
"""KV: secret.{tenant}.{name}, key.{tenant}, what they are sealed by; platform, what those are sealed by"""
BLOB_KEY_BUCKET = "BLOB_KEYS"
"""KV: key.{tenant}, what its blobs are sealed by; platform, what those are sealed by"""
NO_NODE = "-"
"""In the place of a node's name, where another process publishes; no node's name begins so."""


@lru_cache(8192)
def node_of(subject: str) -> str:
    """The node whose agent published on `subject`; "" if it is no agent's."""
    match subject.split("."):
        case ["pl", _, "credit", node, _] | ["pl", _, "gw", _, "reply", node] | ["pl", _, "beat", node]:
            return node
        case ["pl", _, "gw", _, "nested" | "locked", node]:
            return node
        case ["pl", _, "node", node, "ran" | "blobs" | "renew" | "secrets" | "erased" | "storage"]:
            return node
        case ["usage", _, node, _] | ["logs", _, node, _, _, _] if node != NO_NODE:
            return node
    return ""


def run(region: str, node: str, instance: str) -> str:
    # Per incarnation: NO_RESPONDERS proves that this one is gone, and a new one never gets its calls.
    return f"pl.{region}.node.{node}.run.{instance}"


def control(region: str, node: str) -> str:
    return f"pl.{region}.node.{node}.ctl"


def link_offers(region: str, node: str, instance: str) -> str:
    """Of an agent; of a gateway `node` is "", and `instance` its process."""
    return f"pl.{region}.node.{node}.link.{instance}" if node else f"pl.{region}.gw.{instance}.link"


def command(region: str, node: str) -> str:
    return f"pl.{region}.node.{node}.cmd"


def beat(region: str, node: str = "*") -> str:
    return f"pl.{region}.beat.{node}"


def ran(region: str, node: str = "*") -> str:
    return f"pl.{region}.node.{node}.ran"


def blobs(region: str, node: str = "*") -> str:
    return f"pl.{region}.node.{node}.blobs"


def renew(region: str, node: str = "*") -> str:
    return f"pl.{region}.node.{node}.renew"


def secrets(region: str, node: str = "*") -> str:
    return f"pl.{region}.node.{node}.secrets"


def erased(region: str, node: str = "*") -> str:
    return f"pl.{region}.node.{node}.erased"


def storage(region: str, node: str = "*") -> str:
    return f"pl.{region}.node.{node}.storage"


def credit(region: str, node: str = "*", version: str = "*") -> str:
    return f"pl.{region}.credit.{node}.{version}"


def reply(region: str, gateway: str, node: str = "*") -> str:
    return f"pl.{region}.gw.{gateway}.reply.{node}"


def nested(region: str, gateway: str, node: str = "*") -> str:
    return f"pl.{region}.gw.{gateway}.nested.{node}"


def lock_packages(region: str, node: str) -> str:
    return f"pl.{region}.node.{node}.lock"


def packages_locked(region: str, gateway: str, node: str = "*") -> str:
    return f"pl.{region}.gw.{gateway}.locked.{node}"


def to_home(region: str, gateway: str) -> str:
    return f"pl.{region}.gw.{gateway}.home"


def to_origin(region: str, gateway: str) -> str:
    return f"pl.{region}.gw.{gateway}.origin"


def ask(region: str, gateway: str) -> str:
    return f"pl.{region}.gw.{gateway}.ask"


def kept(region: str, gateway: str) -> str:
    return f"pl.{region}.gw.{gateway}.kept"


def traces(region: str) -> str:
    return f"pl.{region}.traces"


def events(region: str, gateway: str) -> str:
    return f"pl.{region}.gw.{gateway}.events"


def limits(region: str, gateway: str) -> str:
    return f"pl.{region}.gw.{gateway}.limits"


def allowed(region: str, gateway: str) -> str:
    return f"pl.{region}.gw.{gateway}.allowed"


def holdings_wanted(region: str) -> str:
    return f"pl.{region}.holdings"


def credits_wanted(region: str) -> str:
    return f"pl.{region}.credits"


@lru_cache(4096)
def shard_of(key: str) -> int:
    """The shard of a function (`tenant:app.function`) or another key."""
    return crc32(key.encode()) % SHARDS


def jobs_asked(region: str, gateway: str) -> str:
    return f"pl.{region}.gw.{gateway}.jobs"


@lru_cache(4096)
def job_flow(region: str, function: str, tenant: str, priority: str) -> str:
    """The work queue's subject of one flow: a function (`tenant:app.function`), its caller, and the class."""
    return f"{jobs_of_function(region, function)}.{tenant}.{priority}"


def jobs_of_function(region: str, function: str) -> str:
    """The first four parts of the subjects of its flows."""
    return f"jobs.{region}.{shard_of(function)}.{_digest(function)}"


def jobs_of_shard(region: str, shard: int | str) -> str:
    return f"jobs.{region}.{shard}.>"


@lru_cache(4096)
def _digest(function: str) -> str:
    # Three names and a tenant can exceed a subject's length. Two functions with one digest share a queue.
    from hashlib import blake2b  # here, since OpenSSL takes longer to load than all of this module

    return blake2b(function.encode(), digest_size=10).hexdigest()


def unheard(region: str, gateway: str, call_id: str = "*", grant: int | str = "*") -> str:
    return f"pl.{region}.gw.{gateway}.unheard.{call_id}.{grant}"


def demand(region: str, version: str = "*") -> str:
    return f"pl.{region}.demand.{version}"


def demands(region: str, shard: int | str = "*") -> str:
    return f"pl.{region}.demands.{shard}"


def planned(region: str, gateway: str = "*") -> str:
    return f"pl.{region}.planned.{gateway}"


def breakers(region: str) -> str:
    return f"pl.{region}.breakers"


def tallies(region: str, gateway: str) -> str:
    return f"pl.{region}.gw.{gateway}.tallies"


def loads(region: str) -> str:
    return f"pl.{region}.loads"


def shortage(region: str, version: str = "*") -> str:
    return f"pl.{region}.shortage.{version}"


def shortages(region: str) -> str:
    return f"pl.{region}.shortages"


def advice(region: str) -> str:
    return f"pl.{region}.advice"


def explain(region: str) -> str:
    return f"pl.{region}.explain"


def stop_container(region: str) -> str:
    return f"pl.{region}.stop"


def usage(region: str, node: str, tenant: str) -> str:
    return f"usage.{region}.{node}.{tenant}"


def compared(region: str, tenant: str, app: str) -> str:
    return f"compared.{region}.{tenant}.{app}"


def platform_events(region: str, tenant: str, kind: str) -> str:
    """Of a tenant; "": of the platform. A `kind` has as many tokens as it has parts, such as `breaker.opened`."""
    return f"events.{region}.{tenant or NO_NODE}.{kind}"


def platform_events_of(region: str, tenant: str, kind: str = "") -> str:
    """Those of a tenant, or with "*" all; of a kind, or with its first part alone of all that begin with it."""
    whole = kind if "." in kind or not kind else f"{kind}.>"
    return f"events.{region}.{tenant}.{whole or '>'}"


def audit(region: str, tenant: str) -> str:
    return f"audit.{region}.{tenant}"


def bindings(region: str, node: str) -> str:
    return f"usage.{region}.{NO_NODE}.{node}"


def logs(region: str, node: str, tenant: str, app: str, function: str) -> str:
    return f"logs.{region}.{node}.{tenant}.{app}.{function}"


def logs_before_nodes(region: str, tenant: str, app: str, function: str) -> str:
    """Where lines are that were stored before subjects named nodes; no agent may publish there."""
    return f"logs.{region}.{tenant}.{app}.{function}"
