package metal3

import (
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
)

// asParsed is the expression with which OpenShift's etcd operator parses an address
// (pkg/tnf/pkg/pcs/fencing.go, 2025).
var asParsed = regexp.MustCompile(`.*//(.*):(.*)(/redfish.*)`)

func TestRedfishAddress(t *testing.T) {
	for address, wanted := range map[string][]string{
		"redfish://bmc.example/redfish/v1/Systems/1":      {"bmc.example", "443", "/redfish/v1/Systems/1"},
		"redfish://bmc.example:8443/redfish/v1/Systems/1": {"bmc.example", "8443", "/redfish/v1/Systems/1"},
		"redfish+https://192.0.2.1:8000/redfish/v1/Systems/af2167e4-c13b-4941-b606-f912e9": {
			"192.0.2.1", "8000", "/redfish/v1/Systems/af2167e4-c13b-4941-b606-f912e9",
		},
		"redfish-virtualmedia://[fd00::1]/redfish/v1/Systems/1/":                {"[fd00::1]", "443", "/redfish/v1/Systems/1"},
		"redfish-virtualmedia+https://[fd00::1]:444/redfish/v1/Systems/1":       {"[fd00::1]", "444", "/redfish/v1/Systems/1"},
		"idrac-virtualmedia://bmc.example/redfish/v1/Systems/System.Embedded.1": {"bmc.example", "443", "/redfish/v1/Systems/System.Embedded.1"},
		"ilo5-virtualmedia://bmc.example/redfish/v1/Systems/1":                  {"bmc.example", "443", "/redfish/v1/Systems/1"},
		"redfish://root:hunter2@bmc.example/redfish/v1/Systems/1?token=hunter2": {"bmc.example", "443", "/redfish/v1/Systems/1"},
	} {
		t.Run(address, func(t *testing.T) {
			g := NewWithT(t)
			got, err := RedfishAddress(address)
			g.Expect(err).NotTo(HaveOccurred())
			found := asParsed.FindStringSubmatch(got)
			g.Expect(found).NotTo(BeNil(), got)
			g.Expect(found[1:]).To(Equal(wanted))
			g.Expect(got).To(And(HavePrefix("redfish+https://"), Not(ContainSubstring("hunter2"))))
		})
	}
}

func TestAddressesWithoutRedfish(t *testing.T) {
	for address, problem := range map[string]string{
		"":                                          "is no URL",
		"192.0.2.1":                                 "is no URL",
		"ipmi://192.0.2.1:623":                      `has the driver "ipmi", which does not speak Redfish`,
		"ipmi://root:hunter2@192.0.2.1":             "does not speak Redfish",
		"libvirt://192.0.2.1:6233/":                 "does not speak Redfish",
		"idrac://bmc.example/redfish/v1":            "does not speak Redfish",
		"redfish://root:hunter2@:443/":              "names no host",
		"redfish://bmc.example":                     "has no path of a system",
		"redfish://bmc.example/rest/v1/1":           "has no path of a system",
		"redfish://bmc.example/redfish/v1/":         "has no path of a system",
		"redfish://bmc.example/redfish/v1/Systems/": "has no path of a system",
		"redfish+http://bmc.example:8000/redfish/v1/Systems/1": "only HTTPS is used for fencing",
		"redfish://root:hunter2@bmc.example:port/redfish/v1":   "is no URL",
	} {
		t.Run(address, func(t *testing.T) {
			g := NewWithT(t)
			_, err := RedfishAddress(address)
			g.Expect(err).To(MatchError(And(ContainSubstring(problem), Not(ContainSubstring("hunter2")))))
		})
	}
}
