package root

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// lingering is how long a root whose ranks disagree stays to answer their calls. A running rank calls more often than
// that. A rank that starts later finds no root.
const lingering = 3 * longestPause

// form returns when all ranks are present, or when it is certain that they never will be.
func (h *host) form(ctx context.Context) error {
	wait := h.settings.firstNotice()
	remind := time.NewTimer(wait)
	defer remind.Stop()
	for {
		select {
		case <-h.complete:
			return nil
		case <-h.broken:
			return h.awaitInformed(ctx)
		case <-ctx.Done():
			return h.giveUp(context.Cause(ctx))
		case <-remind.C:
			h.remind()
			wait *= 2
			remind.Reset(wait)
		}
	}
}

// remind logs for which ranks the root waits.
func (h *host) remind() {
	h.mu.Lock()
	missing, away := h.missing(), h.rejections.String()
	forming := h.phase == forming
	h.mu.Unlock()
	if forming {
		attributes := []any{"missing", missing, "size", h.size, "root", h.settings.Root}
		if away != "" {
			attributes = append(attributes, "rejected", away)
		}
		h.settings.log().Warn("rank 0 waits for other ranks to start", attributes...)
	}
}

// disagree ends the forming because of a rank that cannot belong to the job of rank 0. The caller holds the mutex.
func (h *host) disagree(v verdict) {
	h.phase = disagreed
	h.finalVerdict = v
	close(h.broken)
	h.interruptSeats()
}

// awaitInformed waits until all ranks know of the disagreement that has ended the job, or until no more call.
func (h *host) awaitInformed(ctx context.Context) error {
	timer := time.NewTimer(lingering)
	defer timer.Stop()
	select {
	case <-h.allInformed:
	case <-timer.C:
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.disagreement()
}

// disagreement returns the error that has ended the job. The caller holds the mutex.
func (h *host) disagreement() error {
	return fmt.Errorf("%w: %s", ErrDisagreement, h.finalVerdict.text)
}

// recordInformed records that a rank knows of the disagreement.
func (h *host) recordInformed(rank uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if rank == 0 || int64(rank) >= int64(h.size) || h.informed[rank] {
		return
	}
	h.informed[rank] = true
	if len(h.informed) == h.size-1 {
		close(h.allInformed)
	}
}

// giveUp ends the forming. It returns nil if the job has begun meanwhile.
func (h *host) giveUp(cause error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.phase {
	case forming:
	case disagreed:
		return h.disagreement()
	default:
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "of the ranks 0 to %d these did not come to %s: %s", h.size-1, h.listener.Addr(), h.missing())
	if h.rejections.count > 0 {
		fmt.Fprintf(&text, " (rejected or gone: %v)", &h.rejections)
	}
	h.end(fmt.Sprintf("%s: %v", text.String(), cause))
	return fmt.Errorf("%w: %s: %w", ErrIncomplete, text.String(), cause)
}

// missing lists the ranks that have no seat. The caller holds the mutex.
func (h *host) missing() string {
	var ranks []int
	for rank := 1; rank < h.size; rank++ {
		if _, there := h.seats[rank]; !there {
			ranks = append(ranks, rank)
		}
	}
	return list(ranks)
}

// list lists the first of the ranks.
func list(ranks []int) string {
	const most = 16
	text := strings.Trim(fmt.Sprint(ranks[:min(len(ranks), most)]), "[]")
	text = strings.ReplaceAll(text, " ", ", ")
	if len(ranks) > most {
		text += fmt.Sprintf(" and %d more", len(ranks)-most)
	}
	return text
}
