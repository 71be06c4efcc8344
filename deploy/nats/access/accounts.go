package access

import (
	"slices"
	"strings"

	"muster.dev/muster/pkg/bus"
)

// Account is what users of one trust share on the server. Nothing passes from one
// account to another but what the one exports to the other and that one imports.
type Account struct {
	Name string
	// JetStream: the account has the streams.
	JetStream bool
	Users     []User
	Exports   []Export
	Imports   []Import
}

// Export lets accounts use a subject.
type Export struct {
	Subject string
	// Stream lets them read the subject; without it they may publish on it and are
	// answered.
	Stream bool
	// Answers says that a request has several answers.
	Answers  bool
	Accounts []string
}

// Import is the use of another account's subject. As is what it is called in the
// account that imports it; empty for the same.
type Import struct {
	From, Subject, As string
	Stream            bool
}

// System is the account of the server itself, which has no users.
const System = "SYSTEM"

// Accounts gives each user an account of its own, except for queue-manager, which is
// in that of the streams. A right to publish becomes the import of a service, a right
// to read that of a stream.
//
// Permissions alone do not hold what a key may do: the server publishes in the name of
// its account wherever a request asks it to, by the subject of its answer or by a
// consumer's deliver_subject, and looks at no user's permissions for that. In an
// account of its own such an answer goes nowhere but to the user itself.
func Accounts(users []User) []Account {
	core, systems := Account{Name: account, JetStream: true}, Account{Name: System}
	var others []Account
	for _, user := range users {
		if user.Name == QueueManager {
			core.Users = append(core.Users, user)
			continue
		}
		// The server leads JetStream's requests of every account to the system's, which
		// answers that the account has none, unless that import is there already.
		own := Account{Name: user.Name, Users: []User{user}}
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

// nowhere is a subject that nobody reads.
const nowhere = "muster.nowhere.>"

// guarded leads requests for streams and consumers to queue-manager, which lets none
// through that names a subject to deliver to.
func guarded(subject string) Import {
	request, is := strings.CutPrefix(subject, jetstream)
	if is && (strings.HasPrefix(request, "CONSUMER.CREATE.") || strings.HasPrefix(request, "STREAM.CREATE.")) {
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

// once returns the subjects in order, each once.
func once(subjects []string) []string { return slices.Compact(slices.Sorted(slices.Values(subjects))) }
