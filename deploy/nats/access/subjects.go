package access

import (
	"slices"

	"muster.dev/muster/pkg/bus"
)

// jetstream is the prefix of the requests that JetStream answers.
const jetstream = "$JS.API."

// follows are the requests of bus.Follow and similar calls: ephemeral consumers without
// acknowledgement for the filter. No durable consumer reads these streams, so a follower
// cannot take one from another user.
func follows(stream, filter string) []string {
	return []string{
		jetstream + "STREAM.INFO." + stream,
		jetstream + "CONSUMER.CREATE." + stream + ".*." + filter, jetstream + "CONSUMER.INFO." + stream + ".*",
		jetstream + "CONSUMER.DELETE." + stream + ".*", jetstream + "CONSUMER.MSG.NEXT." + stream + ".*",
	}
}

// lastOf is the request of bus.LastMessage, for streams with direct get.
func lastOf(stream, filter string) string { return jetstream + "DIRECT.GET." + stream + "." + filter }

// works are the requests of bus.Work: the subjects with messages, and a durable consumer
// for each of them, which it may delete first, with its acknowledgements.
func works(stream string, filters ...string) []string {
	subjects := []string{
		jetstream + "STREAM.INFO." + stream, jetstream + "CONSUMER.DELETE." + stream + ".*",
		jetstream + "CONSUMER.INFO." + stream + ".*", jetstream + "CONSUMER.MSG.NEXT." + stream + ".*",
		"$JS.ACK." + stream + ".>",
	}
	for _, filter := range filters {
		subjects = append(subjects, jetstream+"CONSUMER.CREATE."+stream+".*."+filter)
	}
	return subjects
}

// makesRoom are the further requests of bus.Work to drop messages of a flooded queue.
func makesRoom(stream string) []string {
	return []string{jetstream + "STREAM.MSG.GET." + stream, jetstream + "STREAM.PURGE." + stream}
}

// makesStreams are the requests of bus.EnsureStreams.
func makesStreams() []string {
	return perStream("STREAM.CREATE.")
}

// configuresStreams are the further requests of bus.ConfigureStreams, which deletes a
// stream that has lost its files; a purge that matches no message detects some of those.
func configuresStreams() []string {
	return slices.Concat(perStream("STREAM.UPDATE."), perStream("STREAM.INFO."), perStream("STREAM.DELETE."), perStream("STREAM.PURGE."))
}

// makesConsumers are the requests of bus.GuardJetStream on behalf of others.
func makesConsumers() []string {
	var subjects []string
	for _, create := range perStream("CONSUMER.CREATE.") {
		subjects = append(subjects, create+".*.>")
	}
	return subjects
}

func perStream(request string) []string {
	var subjects []string
	for _, stream := range bus.Streams() {
		subjects = append(subjects, jetstream+request+stream)
	}
	return subjects
}
