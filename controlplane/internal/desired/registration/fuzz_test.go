package registration

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// The merged override is an object with the content of the last layer, or an error without quotes of the
// input.
func FuzzInstallConfigOverrides(f *testing.F) {
	for _, layer := range []string{
		`{"networking":{"networkType":"Calico"}}`,
		`{"capabilities":null}`,
		`{"capabilities":{"baselineCapabilitySet":"v4.19"}}`,
		`null`,
		`[]`,
		`{"a":{"b":1},"a":2}`,
		`{`,
		``,
	} {
		f.Add(layer, layer, "")
		f.Add(`{"networking":{"clusterNetwork":[]}}`, layer, "vCurrent")
	}
	f.Fuzz(func(t *testing.T, first, last, baseline string) {
		g := NewWithT(t)
		config := &controlplanev1.InstallationConfig{
			Capabilities: &controlplanev1.Capabilities{
				BaselineCapability: baseline,
			},
			APIVIPs:     []string{"192.168.111.5"},
			IngressVIPs: []string{"192.168.111.4"},
		}
		result, err := installConfigOverrides(config, semver.MustParse("4.19.3"), first, last)
		if err != nil {
			g.Expect(err).To(MatchError("the install-config override is not a JSON object"))
			return
		}
		again, err := installConfigOverrides(config, semver.MustParse("4.19.3"), first, last)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(Equal(result), "the same input gives the same bytes")
		var merged, expected map[string]any
		g.Expect(json.Unmarshal([]byte(result), &merged)).To(Succeed())
		if last != "" {
			g.Expect(json.Unmarshal([]byte(last), &expected)).To(Succeed())
		}
		expectWithin(g, merged, expected)
	})
}

// expectWithin expects each value of part that is no object in all, at the same path.
func expectWithin(g Gomega, all, part map[string]any) {
	for key, value := range part {
		if below, is := value.(map[string]any); is {
			g.Expect(all[key]).To(BeAssignableToTypeOf(below), key)
			expectWithin(g, all[key].(map[string]any), below) //nolint:forcetypeassert // checked above
			continue
		}
		g.Expect(all).To(HaveKey(key))
		g.Expect(reflect.DeepEqual(all[key], value)).To(BeTrue(), key) // both may be null
	}
}

// The network of a Node is a part of its cluster network, or an error.
func FuzzHostPrefix(f *testing.F) {
	for _, cidr := range []string{"10.128.0.0/14", "10.0.0.0/30", "fd01::/48", "fd01::/120", "::ffff:10.0.0.0/104", "10.0.0.0/33", ""} {
		f.Add(cidr, int32(0), int32(0))
		f.Add(cidr, int32(8), int32(40))
	}
	f.Fuzz(func(t *testing.T, cidr string, four, six int32) {
		prefix, err := netip.ParsePrefix(cidr)
		size := hostPrefix(cidr, &controlplanev1.HostPrefix{IPv4: four, IPv6: six})
		configured := four
		if err == nil && strings.Contains(cidr, ":") {
			configured = six
		}
		g := NewWithT(t)
		if configured != 0 {
			g.Expect(size).To(Equal(configured))
		} else if err == nil {
			g.Expect(int(size)).To(And(BeNumerically(">=", prefix.Bits()), BeNumerically("<=", prefix.Addr().BitLen())))
		}
	})
}
