package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// retired is a word that names had before the field's word took its place.
type retired struct {
	word string
	now  string // what to say instead
	// under is the folder in which the word has gone; "" for everywhere. Elsewhere it may
	// be the right one: commands yield, coroutines park, RayClusters give up workers.
	under string
	// names limits the word to names: in a comment it is ordinary English, or has another
	// meaning there.
	names bool
}

// retiredWords must not return in names of packages, files, types and functions, where
// tests are free, and in comments, including those of tests. Words that have gone everywhere
// must not return in fields, methods of interfaces and variables either. Constants may have
// them, because they name values of messages. docs/terminology.md defines the words that stay.
//
// Words with one meaning left stay: give up (the workers that a RayCluster gives up), take
// (a term, an epoch, a snapshot), kept (frozen), move (a workload, to another queue).
func retiredWords() []retired {
	return slices.Concat(retiredEverywhere(), retiredInState(), retiredInDecisions(), retiredInServices())
}

// retiredEverywhere are words that have gone from the whole tree.
func retiredEverywhere() []retired {
	return []retired{
		{word: "anew", now: "again, or what is done"},
		{word: "aside", now: "quarantined, undelivered", names: true},
		{word: "asides", now: "quarantine", names: true},
		{word: "basepart", now: "checkpoint part"},
		{word: "beside", now: "what it is: misplaced, placed before, more", names: true},
		{word: "book", now: "state", names: true},
		{word: "booked", now: "reserved", names: true},
		{word: "bucket", now: "equivalence class", names: true},
		{word: "buckets", now: "equivalence classes", names: true},
		{word: "bury", now: "dead-letter"},
		{word: "buried", now: "dead-lettered"},
		{word: "course", now: "attempt state", names: true},
		{word: "desire", now: "send a command", names: true},
		{word: "desired", now: "command", names: true},
		{word: "desk", now: "step"},
		{word: "door", now: "API server, Kubernetes controller, interface"},
		{word: "doors", now: "interfaces"},
		{word: "doubt", now: "invalidate, unclear", names: true},
		{word: "govern", now: "apply the configuration", names: true},
		{word: "journal", now: "decision log", names: true},
		{word: "kubedoor", now: "Kubernetes controller"},
		{word: "moment", now: "timer, deadline", names: true},
		{word: "moments", now: "timers", names: true},
		{word: "parking", now: "unschedulable set"},
		{word: "picture", now: "observed cache", names: true},
		{word: "rehearsal", now: "world"},
		{word: "rehearse", now: "what-if"},
		{word: "roster", now: "index"},
		{word: "said", now: "published, printed, reported", names: true},
		{word: "say", now: "emit, publish, print", names: true},
		{word: "says", now: "the message, or what it checks", names: true},
		{word: "tell", now: "record the change, publish, print", names: true},
		{word: "tells", now: "records, publishes, prints", names: true},
		{word: "told", now: "reported, published, notified", names: true},
		{word: "trouble", now: "disruption, starting reason", names: true},
		{word: "unpark", now: "clear the unschedulable set"},
		{word: "variant", now: "flavored signature", names: true},
		{word: "volley", now: "pipelined publish"},
	}
}

// retiredInState are words that have gone from the state machine.
func retiredInState() []retired {
	return []retired{
		{word: "age", now: "check deadlines", under: "pkg/state", names: true},
		{word: "away", now: "release the lost places", under: "pkg/state", names: true},
		{word: "excuse", now: "discount", under: "pkg/state", names: true},
		{word: "govern", now: "apply the configuration", under: "pkg/state"},
		{word: "governs", now: "has the configuration", under: "pkg/state"},
		{word: "moved", now: "replaced places, lost places", under: "pkg/state", names: true},
		{word: "yield", now: "scale-down", under: "pkg/state", names: true},
		{word: "ledger", now: "replica", under: "pkg/state/decisionlog", names: true},
	}
}

// retiredInDecisions are words that have gone from admission, placement and quota.
func retiredInDecisions() []retired {
	return []retired{
		{word: "park", now: "add to the unschedulable set", under: "pkg/decide/placement"},
		{word: "sight", now: "requeue hint", under: "pkg/decide/placement"},
		{word: "give", now: "release", under: "pkg/decide/placement", names: true},
		{word: "take", now: "allocate", under: "pkg/decide/placement", names: true},
		{word: "use", now: "allocate", under: "pkg/decide/quota", names: true},
		{word: "mark", now: "savepoint", under: "pkg/decide"},
		{word: "begun", now: "evictable gangs", under: "pkg/decide", names: true},
		{word: "claim", now: "nomination", under: "pkg/decide", names: true},
		{word: "claims", now: "nominations", under: "pkg/decide", names: true},
		{word: "claimed", now: "nomination", under: "pkg/decide", names: true},
		{word: "fewest", now: "cheapest, or the count that is needed", under: "pkg/decide", names: true},
		{word: "going", now: "terminating", under: "pkg/decide", names: true},
		{word: "hold", now: "head reservation", under: "pkg/decide", names: true},
		{word: "holds", now: "head reservations", under: "pkg/decide", names: true},
		{word: "line", now: "order", under: "pkg/decide/admission", names: true},
		{word: "offence", now: "share rank", under: "pkg/decide"},
		{word: "ripen", now: "end back-offs", under: "pkg/decide"},
		{word: "shape", now: "pod-set signature", under: "pkg/decide", names: true},
		{word: "move", now: "replan", under: "pkg/decide", names: true},
		{word: "moved", now: "replanned", under: "pkg/decide", names: true},
		{word: "taking", now: "snapshot builder", under: "pkg/decide", names: true},
		{word: "turn", now: "next class", under: "pkg/decide", names: true},
		{word: "unhold", now: "end a head reservation", under: "pkg/decide"},
		{word: "wake", now: "requeue", under: "pkg/decide", names: true},
	}
}

// retiredInServices are words that have gone from the services and from the bus that they
// share.
func retiredInServices() []retired {
	return []retired{
		{word: "take", now: "acquire, apply, handle", under: "services/intake", names: true},
		{word: "take", now: "acquire, apply, handle", under: "services/muster", names: true},
		{word: "take", now: "reserve, read", under: "services/internal", names: true},
		{word: "give", now: "release, dead-letter", under: "services/intake", names: true},
		{word: "take", now: "deliver, handle", under: "pkg/bus", names: true},
		{word: "give", now: "return unread", under: "pkg/bus", names: true},
		{word: "give", now: "release, redeliver", under: "services/queue-manager", names: true},
		{word: "wake", now: "notify", under: "services", names: true},

		{word: "base", now: "checkpoint", under: "services/queue-manager"},
		{word: "bases", now: "checkpoints", under: "services/queue-manager"},
		{word: "govern", now: "apply the configuration", under: "services/queue-manager"},
		{word: "mark", now: "watermark", under: "services/queue-manager"},
		{word: "marks", now: "watermarks", under: "services/queue-manager", names: true},
		{word: "asides", now: "quarantine", under: "services/queue-manager"},
		{word: "ledger", now: "store", under: "services/queue-manager/internal", names: true},
		{word: "convict", now: "diagnose", under: "services/queue-manager/internal"},
		{word: "fate", now: "outcome", under: "services/queue-manager/internal", names: true},
		{word: "lane", now: "publisher", under: "services/queue-manager/internal/relay"},
		{word: "missing", now: "commands found", under: "services/queue-manager/internal/relay", names: true},
	}
}

// checkRetiredComments returns a sentence for each line of a comment that has a retired
// word. Words in backquotes are quoted code.
func checkRetiredComments(folder string, files []file, words []retired) []string {
	var breaches []string
	for _, f := range files {
		for _, group := range f.syntax.Comments {
			for _, comment := range group.List {
				first := f.set.Position(comment.Pos()).Line
				for i, text := range strings.Split(quotedCode.ReplaceAllString(comment.Text, ""), "\n") {
					found := wordsOf(text)
					for _, r := range words {
						if !r.names && inFolder(folder, r.under) && slices.Contains(found, r.word) {
							breaches = append(breaches, fmt.Sprintf("%s/%s:%d: the comment has the retired word %q: use %q", folder, f.name, first+i, r.word, r.now))
						}
					}
				}
			}
		}
	}
	return breaches
}

// quotedCode is code in a comment.
var quotedCode = regexp.MustCompile("`[^`\\n]*`")

// checkRetired returns a sentence for each name of a package, its files, types and
// functions that has a retired word, and for each field, method of an interface and variable
// that has one that has gone everywhere.
func checkRetired(folder string, files []file, words []retired) []string {
	var breaches []string
	refuseBy := func(applies func(retired) bool, what, name string) {
		for _, r := range words {
			if applies(r) && slices.Contains(wordsOf(name), r.word) {
				breaches = append(breaches, fmt.Sprintf("%s: %s %s has the retired word %q: use %q", folder, what, name, r.word, r.now))
			}
		}
	}
	refuse := func(what, name string) {
		refuseBy(func(r retired) bool { return inFolder(folder, r.under) }, what, name)
	}
	refuseAll := func(what string, names []*ast.Ident) {
		for _, name := range names {
			refuseBy(func(r retired) bool { return r.under == "" }, what, name.Name)
		}
	}
	refuse("the folder", path.Base(folder))
	for _, f := range files {
		if strings.HasSuffix(f.name, "_test.go") {
			continue
		}
		if name := f.syntax.Name.Name; name != path.Base(folder) {
			refuse("package", name)
		}
		refuse("file", f.name)
		for _, declaration := range f.syntax.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				refuse("function", d.Name.Name)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch declared := spec.(type) {
					case *ast.TypeSpec:
						refuse("type", declared.Name.Name)
						forEachMember(declared, refuseAll)
					case *ast.ValueSpec:
						if d.Tok == token.VAR {
							refuseAll("variable", declared.Names)
						}
					}
				}
			}
		}
	}
	return breaches
}

// forEachMember calls each with the names of the fields, and of the methods of interfaces,
// that a type declares.
func forEachMember(declared *ast.TypeSpec, each func(what string, names []*ast.Ident)) {
	ast.Inspect(declared.Type, func(n ast.Node) bool {
		switch t := n.(type) {
		case *ast.StructType:
			for _, field := range t.Fields.List {
				each("field", field.Names)
			}
		case *ast.InterfaceType:
			for _, method := range t.Methods.List {
				each("method", method.Names)
			}
		}
		return true
	})
}

// inFolder reports whether a folder is one of those under another; all are under "".
func inFolder(folder, under string) bool {
	return under == "" || folder == under || strings.HasPrefix(folder, under+"/")
}

// wordsOf splits a name at its capitals, digits and signs: SetHTTPServer is set, http,
// server.
func wordsOf(name string) (words []string) {
	letters := []rune(name)
	begin := 0
	cut := func(end int) {
		if end > begin {
			words = append(words, strings.ToLower(string(letters[begin:end])))
		}
	}
	for i, r := range letters {
		switch {
		case !unicode.IsLetter(r):
			cut(i)
			begin = i + 1
		case i > begin && unicode.IsUpper(r) && (unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])):
			cut(i)
			begin = i
		}
	}
	cut(len(letters))
	return words
}
