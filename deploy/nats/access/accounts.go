package access

import (
	"slices"
	"strings"

	"muster.dev/muster/pkg/bus"
)

// Account is a NATS account: an isolated set of users. Messages pass between accounts only
// by an export of one and an import of the other.
type Account struct {
	Name string
	// JetStream: the account has the streams.
	JetStream bool
	Users     []User
	Exports   []Export
	Imports   []Import
	// Limits are those of the account's only user.
	Limits Limits
}

// Export lets accounts use a subject.
type Export struct {
	Subject string
	// Stream lets them read the subject; without it they may send requests to it.
	Stream bool
	// Answers means that a request has several answers.
	Answers  bool
	Accounts []string
}

// Import is the use of another account's subject. As is its name in the importing account;
// empty for the same.
type Import struct {
	From, Subject, As string
	Stream            bool
}

// System is the account of the server itself, which has no users.
const System = "SYSTEM"

// Accounts gives each user its own account, except queue-manager, which is in that of the
// streams. A right to publish becomes the import of a service, a right to read that of a
// stream.
//
// Permissions alone do not confine a key: in its account the server publishes to any
// subject that a request names, as the subject of its answer or a consumer's
// deliver_subject, without checking the user's permissions. In a separate account such a
// message reaches only the user itself.
func Accounts(users []User) []Account {
	core, systems := Account{Name: account, JetStream: true}, Account{Name: System}
	var others []Account
	for _, user := range users {
		if user.Name == QueueManager {
			core.Users = append(core.Users, user)
			continue
		}
		// Unless an account imports them already, the server routes its JetStream requests to
		// the system account, which answers that the account has no JetStream.
		own := Account{Name: user.Name, Users: []User{user}, Limits: user.Limits}
		nothing := Import{From: System, Subject: nowhere, As: jetstream + ">"}
		for _, subject := range once(user.Publish) {
			own.Imports = append(own.Imports, guarded(subject))
		}
		for _, subject := range once(user.Subscribe) {
			own.Imports = append(own.Imports, Import{From: account, Subject: subject, Stream: true})
		}
		for _, i := range own.Imports {
			core.export(i, own.Name)
		}
		own.Imports = append(own.Imports, nothing)
		systems.export(nothing, own.Name)
		others = append(others, own)
	}
	return append([]Account{core, systems}, others...)
}

// nowhere is a subject without readers.
const nowhere = "muster.nowhere.>"

// guardedRequests are the JetStream requests that queue-manager answers.
var guardedRequests = []string{"CONSUMER.CREATE.", "STREAM.CREATE.", "DIRECT.GET." + bus.EventsStream + "."}

// guarded routes requests for streams, consumers and last events to queue-manager. It
// refuses those that name a delivery subject, and forwards a few requests for last events
// at a time.
func guarded(subject string) Import {
	request, is := strings.CutPrefix(subject, jetstream)
	if is && slices.ContainsFunc(guardedRequests, func(prefix string) bool { return strings.HasPrefix(request, prefix) }) {
		return Import{From: account, Subject: bus.GuardSubject + request, As: subject}
	}
	return Import{From: account, Subject: subject}
}

func (a *Account) export(i Import, to string) {
	at := slices.IndexFunc(a.Exports, func(e Export) bool { return e.Subject == i.Subject && e.Stream == i.Stream })
	if at < 0 {
		at = len(a.Exports)
		a.Exports = append(a.Exports, Export{
			Subject: i.Subject, Stream: i.Stream, Answers: strings.HasPrefix(i.Subject, jetstream+"CONSUMER.MSG.NEXT."),
		})
	}
	a.Exports[at].Accounts = append(a.Exports[at].Accounts, to)
}

// once returns the subjects sorted, without duplicates.
func once(subjects []string) []string { return slices.Compact(slices.Sorted(slices.Values(subjects))) }
