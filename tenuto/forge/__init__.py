"""GitHub and GitLab: issues as requests, branches as pull requests, reviews as feedback."""
