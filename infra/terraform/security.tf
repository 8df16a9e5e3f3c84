# Who reaches whom, by role: the table of docs/kubernetes.md, once more below Kubernetes. Pods have their node's group.
resource "aws_security_group" "plane" {
  name_prefix = "${var.name}-plane-"
  description = "Nodes of the control plane and the bus"
  vpc_id      = aws_vpc.main.id
  tags        = { Name = "${var.name}-plane" }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_security_group" "agents" {
  name_prefix = "${var.name}-agents-"
  description = "Nodes with agents, which run tenants' code"
  vpc_id      = aws_vpc.main.id
  tags        = { Name = "${var.name}-agents" }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_security_group" "database" {
  name_prefix = "${var.name}-database-"
  description = "The ledger"
  vpc_id      = aws_vpc.main.id
  tags        = { Name = "${var.name}-database" }

  lifecycle {
    create_before_destroy = true
  }
}

locals {
  cluster_group = aws_eks_cluster.main.vpc_config[0].cluster_security_group_id
  groups = {
    plane    = aws_security_group.plane.id
    agents   = aws_security_group.agents.id
    database = aws_security_group.database.id
    cluster  = local.cluster_group # the API's addresses in the network
  }
  # Who hears whom, at which ports.
  heard = {
    plane-plane     = { hearer = "plane", speaker = "plane", from = 0, to = 65535, protocol = "tcp" }
    plane-plane-dns = { hearer = "plane", speaker = "plane", from = 53, to = 53, protocol = "udp" }
    bus             = { hearer = "plane", speaker = "agents", from = 4222, to = 4222, protocol = "tcp" }
    joining         = { hearer = "plane", speaker = "agents", from = 8470, to = 8470, protocol = "tcp" }
    bodies          = { hearer = "plane", speaker = "agents", from = 8475, to = 8475, protocol = "tcp" }
    dns-tcp         = { hearer = "plane", speaker = "agents", from = 53, to = 53, protocol = "tcp" }
    dns-udp         = { hearer = "plane", speaker = "agents", from = 53, to = 53, protocol = "udp" }
    metrics         = { hearer = "agents", speaker = "plane", from = 8474, to = 8474, protocol = "tcp" }
    ledger          = { hearer = "database", speaker = "plane", from = 5432, to = 5432, protocol = "tcp" }
    plane-api       = { hearer = "cluster", speaker = "plane", from = 443, to = 443, protocol = "tcp" }
    agents-api      = { hearer = "cluster", speaker = "agents", from = 443, to = 443, protocol = "tcp" }
    plane-kubelet   = { hearer = "plane", speaker = "cluster", from = 1025, to = 65535, protocol = "tcp" } # webhooks of add-ons too
    agents-kubelet  = { hearer = "agents", speaker = "cluster", from = 10250, to = 10250, protocol = "tcp" }
  }
}

resource "aws_vpc_security_group_ingress_rule" "heard" {
  for_each                     = local.heard
  description                  = each.key
  security_group_id            = local.groups[each.value.hearer]
  referenced_security_group_id = local.groups[each.value.speaker]
  ip_protocol                  = each.value.protocol
  from_port                    = each.value.from
  to_port                      = each.value.to
}

resource "aws_vpc_security_group_ingress_rule" "clients" { # a load balancer of pods' addresses has clients' own
  for_each          = toset(concat(var.client_networks, [var.network]))
  description       = "clients of gateways"
  security_group_id = aws_security_group.plane.id
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = 8470
  to_port           = 8470
}

# The network that tenants' functions may be let out to is bounded by the policies, and by the platform's own proxy.
resource "aws_vpc_security_group_egress_rule" "out" {
  for_each          = { plane = aws_security_group.plane.id, agents = aws_security_group.agents.id }
  description       = "the cluster, AWS, receivers of webhooks, and what functions may reach"
  security_group_id = each.value
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}
