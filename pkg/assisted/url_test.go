package assisted

import (
	"encoding/base64"
	"testing"

	. "github.com/onsi/gomega"
)

func TestInfraEnvOfURL(t *testing.T) {
	token := func(claims string) string {
		return "eyJhbGciOiJFUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	for url, want := range map[string]string{
		"http://img/byid/988939b3/4.19/x86_64/full.iso":                                                             "988939b3",
		"https://img/byapikey/" + token(`{"infra_env_id":"988939b3"}`) + "/4.19/x86_64/full.iso":                    "988939b3",
		"https://img/bytoken/" + token(`{"sub":"988939b3"}`) + "/4.19/x86_64/full.iso":                              "988939b3",
		"https://img/images/988939b3/pxe-initrd?api_key=x":                                                          "988939b3",
		"https://svc/api/assisted-install/v2/infra-envs/988939b3/downloads/files?api_key=x&file_name=discovery.ign": "988939b3",
		"http://placeholder.invalid/live.iso":                                                                       "",
		"https://img/byapikey/no-token/4.19/full.iso":                                                               "",
		"https://img/byapikey/a.%21.c/4.19/full.iso":                                                                "",
		"https://img/byapikey/a.e30.c/4.19/full.iso":                                                                "",
		"https://img/byid": "",
		"://":              "",
		"":                 "",
	} {
		NewWithT(t).Expect(InfraEnvIDOfURL(url)).To(Equal(want), "%q", url)
	}
}

func TestRedactURLs(t *testing.T) {
	for message, want := range map[string]string{
		"nothing to hide: 3 of 5 hosts are ready":                                  "nothing to hide: 3 of 5 hosts are ready",
		`cannot get "https://u:p@img.example:8443/byapikey/eyJ/4.19?x=1": refused`: `cannot get "https://img.example:8443/...": refused`,
		"cannot reach https://img.example:8443.":                                   "cannot reach https://img.example:8443.",
		"failed(https://img/?api_key=top-secret)":                                  "failed(https://img/...)",
		"error:https://img/?api_key=top-secret,retry":                              "error:https://img/...",
		"see\nhttps://img/byapikey/top-secret\nand\thttp://u:top-secret@img/x":     "see https://img/... and http://img/...",
		"<https://img/top-secret>'https://img/top-secret'":                         "<https://img/...>'https://img/...'",
		"https://img?api_key=top-secret":                                           "https://img/...",
		"https://img#top-secret":                                                   "https://img/...",
		"HTTPS://u:top-secret@img":                                                 "HTTPS://img/...",
		"https://u:top/secret@img/x":                                               "https://.../...",
		"http://a,https://u:top-secret@b/x":                                        "http://a/...",
		"https://[fd00::1]:8443/byapikey/top-secret":                               "https://[fd00::1]:8443/...",
		`{"url":"https:\/\/img\/byapikey\/top-secret"}`:                            `{"url":"https://img/..."}`,
		"redirect=https%3A%2F%2Fimg%2F%3Fapi_key%3Dtop-secret":                     "redirect=https://img/...",
		"GET /images/1?api_key=top-secret&arch=x86_64 answers 401":                 "GET /images/1?api_key=...&arch=x86_64 answers 401",
		"token eyJhbGciOiJFUzI1NiJ9.eyJpZCI6MX0.c2ln is not valid":                 "token ... is not valid",
		"header Authorization: Bearer top-secret-token refused":                    "header Authorization: Bearer ... refused",
		"docker://quay.io/ocp/release@sha256:0123":                                 "docker://quay.io/...",
		"quay.io/ocp/release@sha256:0123 does not exist":                           "quay.io/ocp/release@sha256:0123 does not exist",
	} {
		g := NewWithT(t)
		got := RedactURLs(message)
		g.Expect(got).To(Equal(want), "%q", message)
		g.Expect(RedactURLs(got)).To(Equal(got), "redacting again changes nothing")
	}
}
