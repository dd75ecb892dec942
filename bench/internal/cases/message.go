package cases

import "context"

// The steps of the messages, as in peers/mpi_rma.c.

// sendAll sends a message and returns when the program may reuse its memory.
func sendAll(ctx context.Context, b *Buffers, n int) error {
	if err := b.messenger.send(ctx, b.buffer[:n]); err != nil || n <= mostCopied {
		return err
	}
	return b.messenger.settle(ctx)
}

func sendReceive(ctx context.Context, b *Buffers, n int) error {
	if err := sendAll(ctx, b, n); err != nil {
		return err
	}
	return b.messenger.receive(ctx, b.buffer[getsAt:getsAt+n])
}

func receiveSend(ctx context.Context, b *Buffers, n int) error {
	if err := b.messenger.receive(ctx, b.buffer[getsAt:getsAt+n]); err != nil {
		return err
	}
	return sendAll(ctx, b, n)
}

// answerBytes is the length of the message that is sent back for many messages.
const answerBytes = 8

func sendMany(ctx context.Context, b *Buffers, n int) error {
	for j := range InFlight {
		from := (j * n) % streamFrom
		if err := b.messenger.send(ctx, b.buffer[from:from+n]); err != nil {
			return err
		}
	}
	return b.messenger.receive(ctx, b.buffer[getsAt:getsAt+answerBytes])
}

func receiveMany(ctx context.Context, b *Buffers, n int) error {
	for j := range InFlight {
		to := getsAt + (j*n)%streamFrom
		if err := b.messenger.receive(ctx, b.buffer[to:to+n]); err != nil {
			return err
		}
	}
	return b.messenger.send(ctx, b.buffer[:answerBytes])
}
