package job

// NewLocalExchange returns the exchange of each rank of a job whose ranks are goroutines.
func NewLocalExchange(size int) func(rank int) Exchange { return newLocalExchange(size).of }
