package assisted

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// Text around a URL must not make RedactURLs keep a credential. Redacting again changes nothing.
func FuzzRedactURLs(f *testing.F) {
	for _, around := range []string{
		"",
		" ",
		"cannot get ",
		`"`,
		"'",
		"(",
		",",
		";",
		"|",
		"{\"url\":\"",
		"\\",
		"https://",
		"a:b@",
		"%2f",
		"\n",
		"é",
		"<",
		"@",
		":",
		"://",
		"http:",
	} {
		f.Add(around, around)
		f.Add(around, "")
		f.Add("", around)
	}
	f.Fuzz(func(t *testing.T, before, behind string) {
		const secret = "top-s3cret"
		for _, url := range []string{
			"https://img.example:8443/byapikey/" + secret + "/4.19",
			"https://img.example/?api_key=" + secret,
			"https://u:" + secret + "@img.example/x",
			"https://img.example/images/1?image_token=" + secret + "&arch=x86_64",
		} {
			g := NewWithT(t)
			message := before + url + behind
			if strings.Contains(before, secret) || strings.Contains(behind, secret) {
				return
			}
			got := RedactURLs(message)
			g.Expect(got).NotTo(ContainSubstring(secret), "%q", message)
			g.Expect(RedactURLs(got)).NotTo(ContainSubstring(secret))
		}
	})
}

// The public form of a URL has no credential and is stable.
func FuzzURLs(f *testing.F) {
	for _, url := range []string{
		"http://img/byid/988939b3/4.19/x86_64/full.iso",
		"https://img/byapikey/a.e30.c/4.19",
		"https://u:p@svc/v2/clusters/1/downloads/files?api_key=x&file_name=kubeconfig#f",
		"://",
		"%",
		"https://[::1/x",
		"byid",
		"/byid/",
	} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		g := NewWithT(t)
		InfraEnvIDOfURL(url)
		public := PublicURL(url)
		if public == "" {
			return
		}
		_, query, _ := strings.Cut(public, "?")
		g.Expect(query).NotTo(ContainSubstring("api_key="))
		g.Expect(PublicURL(public)).To(Equal(public))
	})
}
