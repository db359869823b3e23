"""The agent that crash tests run; it stands on its worker's path as a user's package would."""
