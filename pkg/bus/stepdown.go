package bus

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

// stepDownTimeout bounds the question for a stream and the change of its leader.
const stepDownTimeout = 5 * time.Second

// StepDown has another server lead a stream that several servers keep. The leader forgets the
// messages that it has accepted and that the others have not confirmed. It reports false for a
// stream on one server.
func (b *Bus) StepDown(ctx context.Context, stream string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, stepDownTimeout)
	defer cancel()
	present, err := b.js.Stream(ctx, stream)
	if err != nil {
		return false, fmt.Errorf("look at stream %s: %w", stream, err)
	}
	if present.CachedInfo().Config.Replicas <= 1 {
		return false, nil
	}
	answer, err := b.nc.RequestWithContext(ctx, jetstreamAPI+"STREAM.LEADER.STEPDOWN."+stream, nil)
	if err != nil {
		return false, fmt.Errorf("have another server lead stream %s: %w", stream, err)
	}
	if !bytes.Contains(answer.Data, []byte(`"success":true`)) {
		return false, fmt.Errorf("have another server lead stream %s: NATS answers %.200s", stream, answer.Data)
	}
	return true, nil
}
