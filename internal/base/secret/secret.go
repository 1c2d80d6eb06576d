// Package secret keeps secrets in the environment of Kiln away from the programs that it runs.
//
// On Linux, every process of the same user can read the environment that a process was started with, in
// /proc/PID/environ, and that file does not change with os.Unsetenv: it is the memory in which the kernel has put the
// variables. So [Hide] overwrites the values there. Go has its own copy, so os.Getenv returns what it did. Nothing
// has to be started again, and no secret is handed on.
package secret

import (
	"os"
	"slices"
	"strings"
)

var exposed error

// Exposed is why Hide could not hide the secrets; nil if it could, or if there are none.
func Exposed() error { return exposed }

// own are the variables of Kiln that have a secret. No other program needs them.
var own = []string{"KILN_CACHE_PASSWORD", "KILN_CACHE_TOKEN", "KILN_CACHE_USER", "KILN_KEY_PASSWORD", "KILN_TOKEN"}

// words are parts of names of variables of other programs that have a secret: GITHUB_TOKEN, AWS_SECRET_ACCESS_KEY,
// CI_JOB_JWT.
var words = []string{"AUTH", "CREDENTIAL", "CREDENTIALS", "JWT", "KEY", "PASS", "PASSPHRASE", "PASSWD", "PASSWORD", "PAT", "PWD",
	"SECRET", "SECRETS", "TOKEN", "TOKENS"}

// is reports whether a variable may have a secret, which is also an address with a password in it. PWD and OLDPWD are
// folders.
func is(name, value string) bool {
	if value == "" || name == "PWD" || name == "OLDPWD" {
		return false
	}
	if _, rest, ok := strings.Cut(value, "://"); ok {
		if user, _, ok := strings.Cut(rest, "@"); ok && !strings.Contains(user, "/") {
			return true
		}
	}
	return slices.ContainsFunc(strings.Split(strings.ToUpper(name), "_"), func(part string) bool { return slices.Contains(words, part) }) ||
		slices.Contains(own, name)
}

// Environ is os.Environ without the variables that only Kiln needs: the environment of other programs.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(own, name)
	})
}

// anywhere reports whether the environment has a secret.
func anywhere() bool {
	return slices.ContainsFunc(os.Environ(), func(v string) bool {
		name, value, _ := strings.Cut(v, "=")
		return is(name, value)
	})
}
