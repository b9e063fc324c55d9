package openshift

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCheckClusterName(t *testing.T) {
	for situation, tc := range map[string]struct {
		name, domain string
		onNone       bool
		refused      string
	}{
		"a label":                   {name: "site-1"},
		"54 characters":             {name: strings.Repeat("a", 54)},
		"55 characters":             {name: strings.Repeat("a", 55), refused: "has 55 characters (at most 54). Set config.clusterName"},
		"a dot":                     {name: "site.one", refused: "cannot be the name of a cluster"},
		"a dot on platform none":    {name: "site.one", onNone: true},
		"two dots on platform none": {name: "site..one", onNone: true, refused: "cannot be the name of a cluster"},
		"domain at the limit":       {name: "site", domain: strings.Repeat("abcdefghi.", 18) + "a"},
		"domain above the limit": {
			name: "site", domain: strings.Repeat("abcdefghi.", 18) + "abc",
			refused: "has 193 characters (at most 191)",
		},
		"hyphen at the end": {name: "site-", refused: "cannot be the name of a cluster"},
	} {
		t.Run(situation, func(t *testing.T) {
			err := CheckClusterName(tc.name, tc.domain, tc.onNone)
			if tc.refused == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.refused)))
		})
	}
}
