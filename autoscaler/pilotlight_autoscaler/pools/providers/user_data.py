"""What a machine does at its first start: it joins its platform by a token, and starts its agent.

The token opens the platform once, for the name of this node alone, until its launch is given up. It is used up before
anything else runs, so what others could read of it later is worth nothing: on the machine its copies are removed, and
the launch template in which it stood is deleted as soon as the machine is there.
"""

from __future__ import annotations

import shlex

from pilotlight_core.model.api.pools.pool_terms import Ec2Terms
from pilotlight_core.model.records.pools import LaunchRecord

METADATA = "http://169.254.169.254/latest"
SCRIPT = """\
#!/bin/bash
set -eu
umask 077
mkdir -p /etc/pilotlight
{files}session=$(curl -sf -X PUT {metadata}/api/token -H 'X-aws-ec2-metadata-token-ttl-seconds: 300')
machine=$(curl -sf -H "X-aws-ec2-metadata-token: $session" {metadata}/meta-data/instance-id)
until pilotlight node join {url} --token=- --node={node} --file=/etc/pilotlight/node.json {ca}<<'JOIN'
{token}
JOIN
do sleep 5; done
rm -f /var/lib/cloud/instance/user-data.txt* /var/lib/cloud/instance/scripts/part-* /var/lib/cloud/instance/obj.pkl
cat > /etc/pilotlight/agent.env <<END
PILOTLIGHT_CREDENTIALS=/etc/pilotlight/node.json
PILOTLIGHT_POOL={pool}
PILOTLIGHT_PROVIDER_ID=$machine
PILOTLIGHT_NOTICES=aws
{env}END
systemctl enable --now pilotlight-agent
"""


def user_data(terms: Ec2Terms, launch: LaunchRecord, join_text: str) -> str:
    """The script of one machine."""
    files, ca, env = "", "", []
    if terms.ca_pem:
        files = f"cat > /etc/pilotlight/ca.crt <<'PEM'\n{terms.ca_pem.strip()}\nPEM\n"
        ca = "--ca-file=/etc/pilotlight/ca.crt "
        env.append("PILOTLIGHT_CA_FILE=/etc/pilotlight/ca.crt")
    if terms.blob_url:
        env.append(f"PILOTLIGHT_BLOB_URL={terms.blob_url}")
    return SCRIPT.format(
        files=files, metadata=METADATA, url=shlex.quote(terms.join_url), node=launch.node, ca=ca, token=join_text,
        pool=launch.pool, env="".join(f"{line}\n" for line in env),
    )  # fmt: skip
