package stats

// Percentiles describe the distribution of the times of a cell's iterations, in the cell's unit.
type Percentiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
	// Batch is the number of iterations that were timed together, of which the mean counts. Count is the number of
	// such times.
	Batch int    `json:"batch"`
	Count uint64 `json:"count"`
}

// All returns the percentiles in ascending order.
func (p *Percentiles) All() []Percentile {
	return []Percentile{{"p50", 0.5, p.P50}, {"p90", 0.1, p.P90}, {"p99", 0.01, p.P99}, {"p99.9", 0.001, p.P999}, {"max", 0, p.Max}}
}

// A Percentile has a name, and the share of the times that exceed it.
type Percentile struct {
	Name   string
	Beyond float64
	Value  float64
}
