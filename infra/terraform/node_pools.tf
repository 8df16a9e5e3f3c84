# What a controller may do that launches machines for pools of nodes: for a role that it has, by whatever name. It ends
# machines with the tag of some pool alone, and hands on no role but that of agents.
data "aws_iam_policy_document" "node_launches" {
  statement {
    actions = [
      "ec2:CreateFleet",
      "ec2:CreateLaunchTemplate",
      "ec2:CreateTags",
      "ec2:DescribeInstances",
      "ec2:RunInstances",
    ]
    resources = ["*"]
  }

  statement {
    actions   = ["ec2:DeleteLaunchTemplate", "ec2:TerminateInstances"]
    resources = ["*"]

    condition {
      test     = "Null"
      variable = "aws:ResourceTag/pilotlight:owner"
      values   = ["false"]
    }
  }

  statement {
    actions   = ["iam:PassRole"]
    resources = [aws_iam_role.node["agents"].arn]
  }

  statement {
    actions = [
      "autoscaling:CompleteLifecycleAction",
      "autoscaling:DescribeLifecycleHooks",
      "sqs:DeleteMessage",
      "sqs:ReceiveMessage",
    ]
    resources = ["*"]
  }
}

output "controller_policy" {
  description = "A policy for the role of controllers that launch nodes: docs/node-pools.md."
  value       = data.aws_iam_policy_document.node_launches.json
}
