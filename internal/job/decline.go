package job

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"
)

const (
	// declining begins the text of a rank that cannot join, in place of what the
	// others wait for. No contact and no introduction begins so.
	declining = "declined;"
	// maxDeclining bounds it, as an Exchange demands.
	maxDeclining = 900
	// decliningTime is how long a rank that cannot join waits for the others to come
	// and hear of it. They may never come, and its own user waits for the error too.
	decliningTime = 5 * time.Second
)

// decline has the others hear why this rank cannot join, and returns that. Otherwise
// they would learn only that it has ended, from a manager that tells as much, or wait
// for it as long as they have patience. The program gets the error, and prints it: it is no warning here.
func decline(ctx context.Context, exchange Exchange, rank int, s Settings, cause error) error {
	s.logger.Debug("this rank cannot join, and tells the others", "rank", rank, "why", cause)
	ctx, cancel := context.WithTimeout(ctx, decliningTime)
	defer cancel()
	// It has failed already; whether all have heard of it changes nothing.
	_, _ = exchange(ctx, declinedText(cause))
	return cause
}

// declinedText is printable and without spaces, as key-value spaces demand.
func declinedText(cause error) string {
	why := cause.Error()
	why = why[:min(len(why), maxDeclining)]
	text := url.QueryEscape(why)
	for len(declining)+len(text) > maxDeclining {
		why = why[:len(why)-1]
		text = url.QueryEscape(why)
	}
	return declining + text
}

// declined is the error if one of the texts says that its rank cannot join.
func declined(texts []string) error {
	for rank, text := range texts {
		escaped, found := strings.CutPrefix(text, declining)
		if !found {
			continue
		}
		why, err := url.QueryUnescape(escaped)
		if err != nil {
			return fmt.Errorf("rank %d: %w: %.80q", rank, errContact, text)
		}
		return &PeerError{Rank: rank, Cause: fmt.Errorf("it cannot join: %s", why)}
	}
	return nil
}
