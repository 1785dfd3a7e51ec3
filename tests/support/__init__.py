"""What several tests share: data, reference implementations and assertions."""
