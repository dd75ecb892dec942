package root

import "errors"

var (
	// ErrNoRoot reports that the environment names no root.
	ErrNoRoot = errors.New("root: none of RMA_ROOT, RMA_RANK and RMA_SIZE is set")
	// ErrSettings reports invalid settings.
	ErrSettings = errors.New("root: invalid settings")
	// ErrListen reports that rank 0 cannot listen on RMA_ROOT.
	ErrListen = errors.New("root: rank 0 cannot listen on RMA_ROOT")
	// ErrUnreachable reports that no process with the key answered as the root in time.
	ErrUnreachable = errors.New("root: no root")
	// ErrClaim reports that the root rejected the rank that this process claims.
	ErrClaim = errors.New("root: claim rejected")
	// ErrIncomplete reports that not all ranks joined in time.
	ErrIncomplete = errors.New("root: not all ranks have joined")
	// ErrDisagreement reports that the ranks have different settings of their job, which has ended before it began.
	ErrDisagreement = errors.New("root: the ranks disagree")
	// ErrLost reports that the connection with the root broke after the job had begun.
	ErrLost = errors.New("root: connection lost")
	// ErrUnfinished reports that rank 0 ended the exchange before all ranks had finalized.
	ErrUnfinished = errors.New("root: not all ranks have finalized")
	// ErrProtocol reports that the other side holds the key but does not speak the protocol.
	ErrProtocol = errors.New("root: protocol error")
)
