package transfer

// Limits are from how many bytes on a Chooser chooses what.
func (c *Chooser) Limits() (bytes []int, protocols []Protocol) {
	for _, l := range c.limits {
		bytes, protocols = append(bytes, l.bytes), append(protocols, l.protocol)
	}
	return bytes, protocols
}
