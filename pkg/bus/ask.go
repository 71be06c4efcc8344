package bus

import (
	"context"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
)

// Asked delivers what queue-manager asks of a cluster's watcher and dispatcher, from
// now on, until ctx ends. A question that comes while the connection is lost is never
// delivered; queue-manager asks again.
func Asked(ctx context.Context, b *Bus, cluster string, logger *zap.Logger) (<-chan *event.ReportWanted, error) {
	questions, err := b.Listen(ctx, event.AskSubject(cluster))
	if err != nil {
		return nil, err
	}
	out := make(chan *event.ReportWanted)
	go func() {
		for d := range questions {
			_, payload, err := d.Event()
			question, ok := payload.(*event.ReportWanted)
			if err != nil || !ok {
				logger.Warn("cannot read an inquiry; dropping it", zap.String("subject", d.Subject), zap.Error(err))
				continue
			}
			select {
			case out <- question:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}
