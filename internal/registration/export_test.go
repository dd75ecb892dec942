package registration

// Trust has look-ups of the card return regions without a look at their objects. It is called before the card is used.
func Trust(c *Card) { c.caching().trusting = true }
