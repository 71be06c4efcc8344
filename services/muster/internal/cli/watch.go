package cli

import (
	"cmp"
	"context"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/follow"
	"muster.dev/muster/services/internal/client/overhttp"
)

// follow passes the steps of workloads on until ctx ends.
func (o *getOptions) follow(ctx context.Context, selected picked, show func(follow.Step) error) error {
	web, err := o.server.overHTTP()
	if err != nil {
		return err
	}
	if web != nil {
		err = watchWeb(ctx, web, selected, show)
	} else {
		err = o.watchBus(ctx, selected, show)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// watchBus reads events as they come.
func (o *getOptions) watchBus(ctx context.Context, selected picked, show func(follow.Step) error) error {
	b, err := o.server.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	heard, err := b.Listen(ctx, event.EventsSubject(cmp.Or(selected.queue, "*"), workload.ID(cmp.Or(string(selected.id), "*"))))
	if err != nil {
		return err
	}
	var duplicates bus.Duplicates
	for d := range heard {
		step, err := follow.Read(d)
		if err != nil || duplicates.Seen(d) {
			continue // a newer version's event, or one that was shown
		}
		if err := show(step); err != nil {
			return err
		}
	}
	return nil
}

// watchWeb reads the stream of a workload, of a queue, or of all that the caller may see.
func watchWeb(ctx context.Context, web *overhttp.Client, selected picked, show func(follow.Step) error) error {
	handle := func(e overhttp.Event) error {
		step, err := e.Step()
		if err == nil {
			return show(step)
		}
		if payload, unread := e.Payload(); unread == nil {
			if _, is := payload.(*event.ClusterChanged); is { // which is of no workload
				return nil
			}
		}
		return err
	}
	switch {
	case selected.id != "":
		return web.WorkloadEvents(ctx, selected.id, overhttp.From{}, handle)
	case selected.queue != "":
		return web.QueueEvents(ctx, selected.queue, overhttp.From{}, handle)
	}
	return web.Events(ctx, overhttp.From{}, handle)
}
