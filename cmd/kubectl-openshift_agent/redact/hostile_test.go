//go:build unix

package redact

import (
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// hostile are texts whose repetition makes a search start again and again, by situation.
var hostile = map[string]string{
	"starts of private keys":             "-----BEGIN PRIVATE KEY-----",
	"ends of private keys":               "-----END PRIVATE KEY-----",
	"start of an end":                    "-----END ",
	"base64":                             "QUJD",
	"base64 in lines":                    strings.Repeat("QUJD", 16) + "\n",
	"lines of a certificate":             "-----BEGIN CERTIFICATE-----\n" + strings.Repeat("QUJD", 16) + "\n",
	"base64 with escaped line breaks":    strings.Repeat("QUJD", 16) + `\n`,
	"quotes that do not close":           `"password":"`,
	"apostrophes that do not close":      `'password':'`,
	"escaped quotes that do not close":   `\"password\":\"`,
	"quotes behind many backslashes":     `\\\\\\\\"`,
	"backslashes":                        `\`,
	"escaped characters":                 `\u0022`,
	"escaped fields":                     `\u0022password\u0022:\u0022`,
	"brackets that do not close":         "password:[",
	"braces that do not close":           "password={",
	"names":                              "password:",
	"names with a value":                 "password: a ",
	"references":                         "secretName: a ",
	"names of values":                    `{"name":"`,
	"values of names":                    `"value":"`,
	"blocks of YAML":                     "password: |\n",
	"blocks of YAML in a string":         `password: |\n`,
	"a name and empty lines":             "password:\n\n",
	"indented lines":                     " password:\n",
	"options":                            "-p ",
	"options with a value":               "--password a ",
	"options of users":                   `-u "a `,
	"options of users without an end":    "-u 'a\" ",
	"options in a list":                  `"-P","`,
	"logins":                             "login -p ",
	"sentences":                          "password is ",
	"sentences about users":              "password of a for b ",
	"htpasswd":                           "htpasswd -b ",
	"htpasswd in a list":                 `"htpasswd","-b",`,
	"echo into chpasswd":                 "echo a | chpasswd ",
	"echo":                               "echo a ",
	"addresses":                          "a:b@",
	"colons":                             "a:",
	"URLs":                               "https://a:b@c/?api_key=d&",
	"schemes":                            "https://",
	"escaped URLs":                       "https%3A%2F%2Fa%3Ab%40c",
	"tokens of kubeadm":                  "abcdef.",
	"tokens of JSON":                     "eyJhbGciOiJFUzI1NiJ9.",
	"data URLs":                          "data:a;",
	"hashes":                             "$6$a",
	"elements of XML":                    "<password>",
	"ends of elements":                   "<a b</",
	"bytes of Go":                        "[]byte(",
	"times":                              "2026-11-29T12:00:00.1Z ",
	"times before lines":                 "2026-11-29T12:00:00.1Z password:\n",
	"bearer":                             "Bearer ",
	"cookies":                            "Cookie: a ",
	"lines of a shell that continue":     "--password \\\n",
	"words that contain names":           "passwordpassword",
	"names that end in an equals sign":   "=password",
	"quotes of a shell":                  `password='a'"`,
	"pairs of quotes":                    `""`,
	"environment of Go":                  "{Name:PASSWORD Value:",
	"objects that name many credentials": `{"name":"PASSWORD","value":`,
}

// TestTimeIsLinear redacts texts of 2 MiB. A search that starts again for each repetition takes minutes.
func TestTimeIsLinear(t *testing.T) {
	const size, limit = 2 << 20, 15 * time.Second
	for situation, unit := range hostile {
		t.Run(situation, func(t *testing.T) {
			text := strings.Repeat(unit, size/len(unit))
			before := used(t)
			New().Text(text)
			d := used(t) - before
			t.Log(d)
			NewWithT(t).Expect(d).To(BeNumerically("<", limit))
		})
	}
}

// used returns the processor time of this process. Other processes of a busy machine do not count.
func used(t *testing.T) time.Duration {
	t.Helper()
	usage := syscall.Rusage{}
	NewWithT(t).Expect(syscall.Getrusage(syscall.RUSAGE_SELF, &usage)).To(Succeed())
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
