# Nodes are in private subnets, and go out by one address a zone. The bucket is reached within AWS.
resource "aws_vpc" "main" {
  cidr_block           = var.network
  enable_dns_support   = true
  enable_dns_hostnames = true
  tags                 = { Name = var.name }
}

resource "aws_default_security_group" "none" { # what is given no other hears and says nothing
  vpc_id = aws_vpc.main.id
}

resource "aws_internet_gateway" "main" {
  vpc_id = aws_vpc.main.id
  tags   = { Name = var.name }
}

resource "aws_subnet" "public" {
  count             = length(local.zones)
  vpc_id            = aws_vpc.main.id
  availability_zone = local.zones[count.index]
  cidr_block        = cidrsubnet(var.network, 8, count.index)
  tags = {
    Name                     = "${var.name}-public-${local.zones[count.index]}"
    "kubernetes.io/role/elb" = "1"
  }
}

resource "aws_subnet" "nodes" {
  count             = length(local.zones)
  vpc_id            = aws_vpc.main.id
  availability_zone = local.zones[count.index]
  cidr_block        = cidrsubnet(var.network, 3, count.index + 1)
  tags = {
    Name                              = "${var.name}-nodes-${local.zones[count.index]}"
    "kubernetes.io/role/internal-elb" = "1"
  }
}

resource "aws_subnet" "database" {
  count             = length(local.zones)
  vpc_id            = aws_vpc.main.id
  availability_zone = local.zones[count.index]
  cidr_block        = cidrsubnet(local.database_network, 2, count.index)
  tags              = { Name = "${var.name}-database-${local.zones[count.index]}" }
}

locals {
  database_network = cidrsubnet(var.network, 6, 1) # what the policy `ledger` lets through
}

resource "aws_eip" "out" {
  count  = length(local.zones)
  domain = "vpc"
  tags   = { Name = "${var.name}-${local.zones[count.index]}" }
}

resource "aws_nat_gateway" "out" {
  count         = length(local.zones)
  allocation_id = aws_eip.out[count.index].id
  subnet_id     = aws_subnet.public[count.index].id
  tags          = { Name = "${var.name}-${local.zones[count.index]}" }
  depends_on    = [aws_internet_gateway.main]
}

resource "aws_route_table" "public" {
  vpc_id = aws_vpc.main.id
  tags   = { Name = "${var.name}-public" }

  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.main.id
  }
}

resource "aws_route_table_association" "public" {
  count          = length(local.zones)
  subnet_id      = aws_subnet.public[count.index].id
  route_table_id = aws_route_table.public.id
}

resource "aws_route_table" "nodes" {
  count  = length(local.zones)
  vpc_id = aws_vpc.main.id
  tags   = { Name = "${var.name}-nodes-${local.zones[count.index]}" }

  route {
    cidr_block     = "0.0.0.0/0"
    nat_gateway_id = aws_nat_gateway.out[count.index].id
  }
}

resource "aws_route_table_association" "nodes" {
  count          = length(local.zones)
  subnet_id      = aws_subnet.nodes[count.index].id
  route_table_id = aws_route_table.nodes[count.index].id
}

resource "aws_vpc_endpoint" "s3" {
  vpc_id            = aws_vpc.main.id
  service_name      = "com.amazonaws.${var.region}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = aws_route_table.nodes[*].id
  tags              = { Name = "${var.name}-s3" }
}
