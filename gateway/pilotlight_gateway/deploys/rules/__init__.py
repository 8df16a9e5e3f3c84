"""What a deploy may not ask for beyond its specifications: plain rules, which import no other module of deploys."""
