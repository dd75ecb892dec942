package root

import "errors"

var (
	// ErrNoRoot: the environment names no root.
	ErrNoRoot = errors.New("root: none of RMA_ROOT, RMA_RANK and RMA_SIZE is set")
	// ErrSettings: the settings make no sense.
	ErrSettings = errors.New("root: invalid settings")
	// ErrListen: rank 0 cannot listen where the root has to be.
	ErrListen = errors.New("root: rank 0 cannot listen on RMA_ROOT")
	// ErrUnreachable: nobody who holds the key answered as the root in time.
	ErrUnreachable = errors.New("root: no root")
	// ErrClaim: the root does not give this process the rank that it claims.
	ErrClaim = errors.New("root: claim refused")
	// ErrIncomplete: not all ranks came in time.
	ErrIncomplete = errors.New("root: not all ranks are there")
	// ErrDisagreement: the ranks were not told the same of their job, which has ended
	// before it began.
	ErrDisagreement = errors.New("root: the ranks disagree")
	// ErrLost: the connection with the root broke when the job had begun.
	ErrLost = errors.New("root: lost")
	// ErrUnfinished: rank 0 ended the exchange before all ranks had finalized.
	ErrUnfinished = errors.New("root: not all ranks have finalized")
	// ErrProtocol: the other side holds the key but does not speak the protocol.
	ErrProtocol = errors.New("root: protocol error")
)
