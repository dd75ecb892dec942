package transfer

import "math"

// TwoSided has the equations of paper C, where a receiver copies or registers as the sender does. They use bytes and
// seconds, and do not round pieces to whole numbers. The paper neglects the time of a copy beside its bytes.
type TwoSided struct {
	// Latency is the latency of the network (lambda), Gap the time between two messages (g).
	Latency, Gap float64
	// Network (Bnet) and Copy (Bcopy) are rates in bytes per second.
	Network, Copy float64
	// RegisterLatency (lambda_reg) and RegisterRate (Breg) are the costs of registering memory.
	RegisterLatency, RegisterRate float64
}

// TwoSided returns the paper's model with the costs of the card.
func (m *Model) TwoSided() TwoSided {
	rate := func(perByte float64) float64 {
		if perByte == 0 {
			return math.Inf(1)
		}
		return 1e9 / perByte
	}
	return TwoSided{
		Latency: (m.post + m.latency) / 1e9, Gap: m.gap / 1e9,
		Network: rate(m.wire), Copy: rate(m.copying),
		RegisterLatency: m.register / 1e9, RegisterRate: rate(m.registerPage / page),
	}
}

// Raw returns the time to write registered memory (section 3, Cost analysis: Tnet).
func (t *TwoSided) Raw(bytes float64) float64 { return t.Latency + bytes/t.Network }

// Registration returns the time of one side's registration (section 2: Treg).
func (t *TwoSided) Registration(bytes float64) float64 {
	return t.RegisterLatency + bytes/t.RegisterRate
}

// NaiveRegister returns the time to register and then send (section 2). Its rate approaches 1/(1/Bnet + 1/Breg): the
// paper counts the registration of one side and no deregistration.
func (t *TwoSided) NaiveRegister(bytes float64) float64 {
	return t.Registration(bytes) + t.Raw(bytes)
}

// NaiveCopy returns the time to copy, send, and copy (section 2). Its rate approaches 1/(1/Bnet + 2/Bcopy).
func (t *TwoSided) NaiveCopy(bytes float64) float64 { return t.Raw(bytes) + 2*bytes/t.Copy }

// Pipeline returns the time to copy in chunks of one length (equation 1).
func (t *TwoSided) Pipeline(bytes, chunk float64) float64 {
	return 2*chunk/t.Copy + bytes/chunk*t.Gap + t.Raw(bytes)
}

// BestChunk returns the length of chunks for which Pipeline is least (equation 3).
func (t *TwoSided) BestChunk(bytes float64) float64 { return math.Sqrt(bytes * t.Gap * t.Copy / 2) }

// Growth returns the ratio q of successive chunks of Superpipeline (equation 5).
func (t *TwoSided) Growth() float64 { return t.Copy / t.Network }

// Chunks returns the number n of chunks of Superpipeline, given the length of the first (equation 7).
func (t *TwoSided) Chunks(bytes, first float64) float64 {
	q := t.Growth()
	return math.Log(1+bytes/first*(q-1)) / math.Log(q)
}

// Superpipeline returns the time to copy in growing chunks (equation 8). The receiver copies the last one, of first
// q^(n-1) bytes, after all has arrived.
func (t *TwoSided) Superpipeline(bytes, first float64) float64 {
	n := t.Chunks(bytes, first)
	return (first+first*math.Pow(t.Growth(), n-1))/t.Copy + n*t.Gap + t.Raw(bytes)
}

// FirstChunk returns how many bytes can be copied during a rendezvous: C0 (section 4, Overlap rendezvous).
func (t *TwoSided) FirstChunk() float64 { return t.Copy * 2 * t.Latency }

// SubBlocked returns the time of Superpipeline where a rendezvous hides the first copy (equation 9). The receiver
// copies blocks of block bytes as they arrive.
func (t *TwoSided) SubBlocked(bytes, first, block float64) float64 {
	return block/t.Copy + t.Chunks(bytes, first)*t.Gap + t.Raw(bytes)
}
