"""What an operator may set. A value's default is what manifests say where it stands; an addition stands nowhere."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """Where a value stands: in which object, and the way there, by keys, indices, and names of a list's objects."""

    kind: str
    object_name: str
    path: str


class ChartValue(NamedTuple):
    """One value of the chart."""

    name: str
    says: str
    places: tuple[Place, ...]
    addition: type | None = None
    """Of what type it is if manifests have none: it is left out while it is empty."""
    is_claim: bool = False
    """Whether it names a claim that takes the place of the empty folder which stands there."""


POD = "spec/template/spec"
GATEWAY, BUS = ("StatefulSet", "pilotlight-gateway"), ("StatefulSet", "pilotlight-bus")
DUTIES, CONTROLLER = ("Deployment", "pilotlight-duties"), ("Deployment", "pilotlight-controller")
AGENT, DASHBOARD = ("DaemonSet", "pilotlight-agent"), ("Deployment", "pilotlight-dashboard")
WORKLOADS = (BUS, DUTIES, AGENT, CONTROLLER, GATEWAY, DASHBOARD)
SETTINGS = ("ConfigMap", "pilotlight")
LEDGER = ("NetworkPolicy", "ledger")
IMAGES = {
    "server": (
        (GATEWAY, "containers/gateway"),
        (DUTIES, "containers/duties"),
        (CONTROLLER, "containers/controller"),
        (DASHBOARD, "containers/dashboard"),
    ),
    "agent": ((AGENT, "containers/agent"), (AGENT, "initContainers/join")),
    "nats": ((BUS, "containers/nats"),),
}


def _at(workload: tuple[str, str], path: str) -> tuple[Place, ...]:
    return (Place(*workload, path),)


VALUES = (
    *(
        ChartValue(f"images.{name}", says, tuple(Place(*owner, f"{POD}/{path}/image") for owner, path in IMAGES[name]))
        for name, says in (
            ("server", "gateways, duties, controllers and dashboards"),
            ("agent", "agents"),
            ("nats", "servers of the bus"),
        )
    ),
    ChartValue(
        "imagePullSecrets",
        "what opens the registry of the images: [{ name: … }], in both namespaces",
        tuple(Place(*each, f"{POD}/imagePullSecrets") for each in WORKLOADS),
        list,
    ),
    ChartValue("region", "the region, which is in all ids", _at(SETTINGS, "data/region")),
    ChartValue(
        "blobUrl",
        "the bucket: s3://NAME?region=…",
        (*_at(SETTINGS, "data/blob-url"), Place("ConfigMap", "pilotlight-agent", "data/blob-url")),
    ),
    ChartValue("publicUrl", "where clients reach gateways", _at(SETTINGS, "data/public-url")),
    ChartValue(
        "dashboardUrl", "where browsers reach the dashboard, for links into it", _at(SETTINGS, "data/dashboard-url")
    ),
    ChartValue(
        "secretsKey",
        "the key of tenants' secrets: a file of the secret pilotlight-secrets-key, or aws-kms://…",
        _at(SETTINGS, "data/secrets-key"),
    ),
    ChartValue(
        "trustedProxies",
        "proxies in front of gateways: networks, commas between",
        _at(SETTINGS, "data/trusted-proxies"),
    ),
    ChartValue(
        "grpcPort",
        "8476: gateways serve the Open Inference Protocol over gRPC there; 0: they do not",
        _at(SETTINGS, "data/grpc-port"),
    ),
    ChartValue(
        "otlpEndpoint",
        "where duties send traces (OTLP over HTTP), by port 443 or as a policy of yours allows; empty: nowhere",
        _at(SETTINGS, "data/otlp-endpoint"),
    ),
    ChartValue("traceRatio", "the part of all calls that is traced", _at(SETTINGS, "data/trace-ratio")),
    ChartValue("accessLog", "which requests gateways log: off, errors or all", _at(SETTINGS, "data/access-log")),
    ChartValue(
        "osvFile",
        "known vulnerabilities, for policies: /var/lib/osv/all.zip, an export of OSV in that claim; empty: none",
        _at(SETTINGS, "data/osv-file"),
    ),
    ChartValue(
        "osvClaim",
        "the claim of a volume that many pods may read, at /var/lib/osv of gateways and duties",
        tuple(Place(*each, f"{POD}/volumes/osv/emptyDir") for each in (GATEWAY, DUTIES)),
        str,
        is_claim=True,
    ),
    *(
        ChartValue(f"nodeIssuer.{name}", says, (Place("ConfigMap", "pilotlight-node-issuer", f"data/{name}"),))
        for name, says in (
            ("issuer", "what `python -m pilotlight_gateway.nodes.node_issuer` has printed"),
            ("keeper", "likewise"),
        )
    ),
    ChartValue("ledger.cidr", "addresses of the database", _at(LEDGER, "spec/egress/0/to/0/ipBlock/cidr")),
    ChartValue("ledger.port", "its port", _at(LEDGER, "spec/egress/0/ports/0/port")),
    ChartValue(
        "service.type", "of the service that clients come by", (Place("Service", "pilotlight-gateway", "spec/type"),)
    ),
    ChartValue(
        "service.annotations",
        "its annotations, as a load balancer wants them",
        (Place("Service", "pilotlight-gateway", "metadata/annotations"),),
        dict,
    ),
    ChartValue("gateway.replicas", "how many gateways", _at(GATEWAY, "spec/replicas")),
    ChartValue("gateway.resources", "of each", _at(GATEWAY, f"{POD}/containers/gateway/resources")),
    ChartValue(
        "gateway.serviceAccountAnnotations",
        "for a role of the cloud's",
        (Place("ServiceAccount", "pilotlight-gateway", "metadata/annotations"),),
        dict,
    ),
    ChartValue("duties.replicas", "how many processes of duties", _at(DUTIES, "spec/replicas")),
    ChartValue("duties.resources", "of each", _at(DUTIES, f"{POD}/containers/duties/resources")),
    ChartValue(
        "duties.serviceAccountAnnotations",
        "for a role of the cloud's",
        (Place("ServiceAccount", "pilotlight-duties", "metadata/annotations"),),
        dict,
    ),
    ChartValue("controller.replicas", "how many controllers, of which one leads", _at(CONTROLLER, "spec/replicas")),
    ChartValue("controller.resources", "of each", _at(CONTROLLER, f"{POD}/containers/controller/resources")),
    ChartValue("dashboard.replicas", "how many dashboards; 0: there is none", _at(DASHBOARD, "spec/replicas")),
    ChartValue("dashboard.resources", "of each", _at(DASHBOARD, f"{POD}/containers/dashboard/resources")),
    ChartValue(
        "dashboard.serviceType",
        "of the service that browsers come by",
        (Place("Service", "pilotlight-dashboard", "spec/type"),),
    ),
    ChartValue(
        "dashboard.serviceAnnotations",
        "its annotations, as a load balancer wants them",
        (Place("Service", "pilotlight-dashboard", "metadata/annotations"),),
        dict,
    ),
    ChartValue("bus.resources", "of each of the three servers", _at(BUS, f"{POD}/containers/nats/resources")),
    ChartValue(
        "bus.storage",
        "the volume of each; it cannot be changed later",
        _at(BUS, "spec/volumeClaimTemplates/0/spec/resources/requests/storage"),
    ),
    ChartValue(
        "bus.storageClass",
        "its class; empty: the cluster's own",
        _at(BUS, "spec/volumeClaimTemplates/0/spec/storageClassName"),
        str,
    ),
    ChartValue("agent.resources", "what agents ask for; no limits", _at(AGENT, f"{POD}/containers/agent/resources")),
    ChartValue(
        "agent.reserveMemory",
        "MiB of each node that agents leave to its host",
        (Place("ConfigMap", "pilotlight-agent", "data/reserve-memory"),),
    ),
    ChartValue(
        "agent.packageIndex",
        "URL of the index of which requirements= is built; empty: none is",
        (Place("ConfigMap", "pilotlight-agent", "data/package-index"),),
    ),
    ChartValue(
        "agent.packageHosts",
        "further hosts of its files, commas between",
        (Place("ConfigMap", "pilotlight-agent", "data/package-hosts"),),
    ),
    ChartValue("agent.updateStrategy", "type: OnDelete, if you drain nodes before", _at(AGENT, "spec/updateStrategy")),
)
SWITCHES = {
    "gpu": (True, "whether nodes have NVIDIA GPUs, and the runtime class `nvidia`"),
    "monitoring": (False, "whether there is a Prometheus operator, in the namespace `monitoring`"),
}
"""By name: what it is without a word, and what it says."""
