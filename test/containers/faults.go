package containers

import (
	"context"
	"fmt"
	"time"

	dockernetwork "github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"muster.dev/muster/test/suite"
)

// Break implements suite.Installation.
func (in *installation) Break(ctx context.Context, name string, fault suite.Fault) (func(context.Context) error, error) {
	c := in.containers[name]
	if c == nil {
		return nil, fmt.Errorf("there is no part %q", name)
	}
	id := c.GetContainerID()
	switch fault {
	case suite.Killed:
		_, err := in.engine.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"})
		return func(ctx context.Context) error {
			_, err := in.engine.ContainerStart(ctx, id, client.ContainerStartOptions{})
			return err
		}, err
	case suite.Wiped:
		_, err := in.engine.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		return func(ctx context.Context) (err error) {
			in.containers[name], err = run(ctx, in.made[name])
			return err
		}, err
	case suite.Paused:
		err := in.pause(ctx, id)
		return func(ctx context.Context) error {
			_, err := in.engine.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
			return err
		}, err
	case suite.CutByNATS:
		return in.cut(ctx, id, in.bus, name)
	case suite.CutFromPostgres:
		return in.cut(ctx, id, in.database, name)
	}
	return nil, fmt.Errorf("a container cannot be %s", fault)
}

// pause freezes the processes of a container. On a busy machine runc gives up when the
// kernel has not frozen all of them within a few milliseconds, and thaws them again
// ("unable to freeze"), so it is asked until it succeeds.
func (in *installation) pause(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, pauseTimeout)
	defer cancel()
	for {
		_, err := in.engine.ContainerPause(ctx, id, client.ContainerPauseOptions{})
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pauseEvery):
		case <-ctx.Done():
			return fmt.Errorf("pause the container: %w", err)
		}
	}
}

// cut takes a container off a network: connections stay open, and nothing
// arrives.
func (in *installation) cut(ctx context.Context, id, from, alias string) (func(context.Context) error, error) {
	_, err := in.engine.NetworkDisconnect(ctx, from, client.NetworkDisconnectOptions{Container: id, Force: true})
	return func(ctx context.Context) error {
		_, err := in.engine.NetworkConnect(ctx, from, client.NetworkConnectOptions{
			Container: id, EndpointConfig: &dockernetwork.EndpointSettings{Aliases: []string{alias}},
		})
		return err
	}, err
}
