package transfer

import "math"

// TwoSided has the equations of paper C, where a receiver copies, or registers, what a sender does.
// They count bytes and seconds, and do not round pieces to whole numbers. The paper neglects what a
// copy takes beside its bytes.
type TwoSided struct {
	// Latency of the network (lambda), and Gap between two messages (g).
	Latency, Gap float64
	// Network (Bnet) and Copy (Bcopy) are rates in bytes a second.
	Network, Copy float64
	// RegisterLatency (lambda_reg) and RegisterRate (Breg) are of registering memory.
	RegisterLatency, RegisterRate float64
}

// TwoSided is the model of the paper with the costs of the card.
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

// Raw is a write of memory that is registered (section 3, Cost analysis: Tnet).
func (t *TwoSided) Raw(bytes float64) float64 { return t.Latency + bytes/t.Network }

// Registration is what one side's takes (section 2: Treg).
func (t *TwoSided) Registration(bytes float64) float64 {
	return t.RegisterLatency + bytes/t.RegisterRate
}

// NaiveRegister registers, then sends (section 2). Its rate goes to 1/(1/Bnet + 1/Breg): the paper
// counts the registration of one side, and none that ends.
func (t *TwoSided) NaiveRegister(bytes float64) float64 {
	return t.Registration(bytes) + t.Raw(bytes)
}

// NaiveCopy copies, sends, and copies (section 2). Its rate goes to 1/(1/Bnet + 2/Bcopy).
func (t *TwoSided) NaiveCopy(bytes float64) float64 { return t.Raw(bytes) + 2*bytes/t.Copy }

// Pipeline copies in chunks of one length (equation 1).
func (t *TwoSided) Pipeline(bytes, chunk float64) float64 {
	return 2*chunk/t.Copy + bytes/chunk*t.Gap + t.Raw(bytes)
}

// BestChunk is the length of chunks for which Pipeline is the least (equation 3).
func (t *TwoSided) BestChunk(bytes float64) float64 { return math.Sqrt(bytes * t.Gap * t.Copy / 2) }

// Growth is by what each chunk of Superpipeline is longer than the one before: q (equation 5).
func (t *TwoSided) Growth() float64 { return t.Copy / t.Network }

// Chunks is how many chunks Superpipeline has, of which the first is so long: n (equation 7).
func (t *TwoSided) Chunks(bytes, first float64) float64 {
	q := t.Growth()
	return math.Log(1+bytes/first*(q-1)) / math.Log(q)
}

// Superpipeline copies in chunks that grow (equation 8). The last one, of first q^(n-1) bytes, is
// what the receiver copies when all has come.
func (t *TwoSided) Superpipeline(bytes, first float64) float64 {
	n := t.Chunks(bytes, first)
	return (first+first*math.Pow(t.Growth(), n-1))/t.Copy + n*t.Gap + t.Raw(bytes)
}

// FirstChunk is what can be copied during a rendezvous: C0 (section 4, Overlap rendezvous).
func (t *TwoSided) FirstChunk() float64 { return t.Copy * 2 * t.Latency }

// SubBlocked is Superpipeline where the first copy hides behind a rendezvous, and the receiver
// copies blocks of so many bytes as they come (equation 9).
func (t *TwoSided) SubBlocked(bytes, first, block float64) float64 {
	return block/t.Copy + t.Chunks(bytes, first)*t.Gap + t.Raw(bytes)
}
