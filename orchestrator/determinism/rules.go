package determinism

import (
	"go/types"
	"path"
	"slices"
)

const (
	insteadOfLog    = "use ctx.Logger(), which is silent in a replay"
	insteadOfWait   = "use ctx.Sleep or orchestrator.Timer"
	insteadOfRandom = "use ctx.Rand(), or an activity for secrets"
	insteadOfIO     = "do it in an activity"
	insteadOfLock   = "orchestrator code runs alone and shares nothing, so it needs no lock; wait with Await, All or Any"
	insteadOfConfig = "hand it in with the input, or read it in an activity"
	insteadOfOrder  = "take slices.Sorted of it"
)

// rule forbids names of a package outside of this module.
type rule struct {
	// pkg is an import path; a trailing /* stands for each package one level below.
	pkg string
	// only and except are patterns (path.Match) over functions, variables and methods: "Now", "Err*", "Timer.*". An
	// empty only means all.
	only, except []string
	instead      string
	// fix replaces the qualified name in a call, behind "ctx."; a * stands for the name. Empty when a fix takes more
	// than that.
	fix string
	// value means that the forbidden name yields values that differ between processes or over time.
	value bool
	// ordered marks iterators that are allowed where the code handles their order.
	ordered bool
}

// rules returns all rules; the first match applies.
func rules() []rule {
	harmless := []string{"Err*", "*.Error", "*.Unwrap", "*.Is", "*.Timeout", "*.Temporary", "*.String"}
	but := func(names ...string) []string { return append(names, harmless...) }
	seeded := []string{"New", "NewPCG", "NewChaCha8", "NewSource", "NewZipf", "*.*"} // as deterministic as their seeds
	return []rule{
		{pkg: "time", only: []string{"Now"}, value: true, instead: "use ctx.Now()", fix: "Now"},
		{pkg: "time", only: []string{"Since"}, value: true, instead: "use ctx.Now().Sub", fix: "Now().Sub"},
		{pkg: "time", only: []string{"Until"}, value: true, instead: "use t.Sub(ctx.Now())"},
		{pkg: "time", only: []string{"Sleep"}, instead: insteadOfWait, fix: "Sleep"},
		{pkg: "time", only: []string{"After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Timer.*", "Ticker.*"}, instead: insteadOfWait},
		{pkg: "time", only: []string{"Local", "Time.Local"}, value: true, instead: "use UTC, or a time zone that the input names"},
		{pkg: "context", only: []string{"WithTimeout*", "WithDeadline*", "AfterFunc"}, instead: "use orchestrator.WithTimeout for a call, or orchestrator.Any with a Timer"},
		{pkg: "context", only: []string{"Background", "TODO"}, instead: "what takes a context.Context belongs in an activity"},

		{pkg: "math/rand/v2", only: []string{"Int*", "Uint*", "Float*", "Perm", "Shuffle", "ExpFloat64", "NormFloat64"}, value: true, instead: insteadOfRandom, fix: "Rand().*"},
		{pkg: "math/rand/v2", except: seeded, value: true, instead: insteadOfRandom},
		{pkg: "math/rand", except: seeded, value: true, instead: insteadOfRandom},
		{pkg: "crypto/rand", value: true, instead: insteadOfRandom},
		{pkg: "crypto/*", only: []string{"Generate*", "*.Generate*"}, value: true, instead: "make keys in an activity"},
		{pkg: "hash/maphash", value: true, instead: "its seed differs in every process; use hash/fnv or crypto/sha256"},
		{pkg: "github.com/google/uuid", only: []string{"New"}, value: true, instead: "use ctx.NewUUID()", fix: "NewUUID"},
		{pkg: "github.com/google/uuid", only: []string{"NewString"}, value: true, instead: "use ctx.NewUUID().String()", fix: "NewUUID().String"},
		{pkg: "github.com/google/uuid", only: []string{"New*", "GetTime", "ClockSequence", "NodeID"}, except: []string{"NewMD5", "NewSHA1", "NewHash", "NewRandomFromReader"}, value: true, instead: "use ctx.NewUUID()"},

		{pkg: "sync", instead: insteadOfLock},
		{pkg: "sync/atomic", instead: insteadOfLock},
		{pkg: "runtime", except: but("Caller", "Callers", "CallersFrames", "FuncForPC", "KeepAlive", "Version", "Frames.*", "Func.*"), value: true, instead: "orchestrator code must not depend on the process that runs it"},
		{pkg: "runtime/*", except: but("Stack", "ReadBuildInfo", "ParseBuildInfo"), instead: "orchestrator code must not depend on the process that runs it"},

		{pkg: "os", only: []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Args", "Hostname", "Getpid", "Getppid"}, value: true, instead: insteadOfConfig},
		{pkg: "os", except: but("Is*", "Expand", "NewSyscallError"), value: true, instead: insteadOfIO},
		{pkg: "os/*", except: harmless, value: true, instead: insteadOfIO},
		{pkg: "io/ioutil", except: []string{"Discard", "NopCloser", "ReadAll"}, value: true, instead: insteadOfIO},
		{pkg: "path/filepath", only: []string{"Abs", "EvalSymlinks", "Glob", "Walk", "WalkDir"}, value: true, instead: insteadOfIO},
		{pkg: "syscall", except: but("Errno.*", "Signal.*"), instead: insteadOfIO},
		{pkg: "plugin", instead: insteadOfIO},
		{pkg: "net", except: but("Parse*", "JoinHostPort", "SplitHostPort", "IPv4*", "CIDRMask", "IP.*", "IPMask.*", "IPNet.*", "HardwareAddr.*", "*.Network"), instead: insteadOfIO},
		{pkg: "net/http", except: but("StatusText", "CanonicalHeaderKey", "DetectContentType", "Parse*", "Header.*", "Cookie.*"), instead: insteadOfIO},
		{pkg: "net/http/*", except: harmless, instead: insteadOfIO},
		{pkg: "net/rpc", except: harmless, instead: insteadOfIO},
		{pkg: "net/rpc/*", except: harmless, instead: insteadOfIO},
		{pkg: "net/smtp", instead: insteadOfIO},
		{pkg: "database/sql", except: but("Named", "Null*.*"), instead: insteadOfIO},

		{pkg: "fmt", only: []string{"Print", "Printf", "Println"}, instead: insteadOfLog},
		{pkg: "fmt", only: []string{"Scan", "Scanf", "Scanln"}, instead: insteadOfIO},
		{pkg: "log", instead: insteadOfLog},
		{pkg: "log/syslog", instead: insteadOfLog},
		{pkg: "log/slog", only: []string{"Default"}, instead: insteadOfLog, fix: "Logger"},
		{pkg: "log/slog", only: []string{"Debug*", "Info*", "Warn*", "Error*", "Log", "LogAttrs", "With"}, instead: insteadOfLog, fix: "Logger().*"},
		{pkg: "log/slog", only: []string{"SetDefault", "SetLogLoggerLevel", "NewLogLogger"}, instead: insteadOfLog},

		{pkg: "maps", only: []string{"Keys", "Values", "All"}, value: true, instead: insteadOfOrder, ordered: true},
		{pkg: "reflect", only: []string{"Value.MapKeys", "Value.MapRange"}, value: true, instead: "sort the keys first"},
		{pkg: "reflect", only: []string{"Value.Pointer", "Value.UnsafePointer", "Value.UnsafeAddr"}, value: true, instead: insteadOfAddress},
		{pkg: "reflect", only: []string{"MakeChan", "Select", "Value.Close", "Value.Recv", "Value.Send", "Value.TryRecv", "Value.TrySend"}, instead: insteadOfChannel},
	}
}

// rulebook holds the rules by package.
type rulebook map[string][]rule

func newRulebook() rulebook {
	book := rulebook{}
	for _, r := range rules() {
		book[r.pkg] = append(book[r.pkg], r)
	}
	return book
}

// find returns the rule that forbids an object.
func (b rulebook) find(o types.Object) (rule, bool) {
	if _, isVar := o.(*types.Var); isVar && !packageLevel(o) {
		return rule{}, false
	}
	pkg := o.Pkg().Path()
	for _, section := range []string{pkg, path.Dir(pkg) + "/*"} {
		for _, r := range b[section] {
			if (len(r.only) == 0 || matches(r.only, o)) && !matches(r.except, o) {
				return r, true
			}
		}
	}
	return rule{}, false
}

func matches(patterns []string, o types.Object) bool {
	name := plainName(o)
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, name) // the patterns are constants, and well-formed
		return ok
	})
}
