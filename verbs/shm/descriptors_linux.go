package shm

const (
	// neighborDescriptors is how many descriptors a process keeps for each process with which it shares memory, itself
	// included: the connection that each of the two makes, and a pidfd.
	neighborDescriptors = 3
	// requestDescriptors are for requests that this process makes: a connection, and the descriptor in the response. A
	// request that finds no descriptor is made again.
	requestDescriptors = 4
	// mostRequests bounds the requests of others for which descriptors are counted, one for each. Not all others ask at
	// the same time: 128 processes that began together needed some of more than 16, and none of more than 32.
	mostRequests = 32
)

// Descriptors returns how many descriptors a process needs to share memory with others, beside those of its open
// device.
func Descriptors(others int) int {
	return keptDescriptors(others) + requestDescriptors + min(others, mostRequests)
}

// keptDescriptors is how many of these the process has open after all requests.
func keptDescriptors(others int) int { return (others + 1) * neighborDescriptors }
