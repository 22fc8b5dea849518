"""What the tests of every service share: servers, databases, people, processes. No production code imports it."""
