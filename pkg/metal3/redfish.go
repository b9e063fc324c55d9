package metal3

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// redfishDrivers are the drivers of the Bare Metal Operator that use Redfish (pkg/hardwareutils/bmc, v0.12).
// A driver may be followed by a transport, +https or +http; the default is HTTPS.
var redfishDrivers = []string{
	"redfish",
	"redfish-virtualmedia",
	"redfish-uefihttp",
	"idrac-redfish",
	"idrac-virtualmedia",
	"ilo5-redfish",
	"ilo5-virtualmedia",
}

// systemPath matches the path of one system (DSP0266, "Redfish-defined URIs"). The service itself has no
// power state.
var systemPath = regexp.MustCompile(`^/redfish/[^/]+/Systems/[^/]`)

// RedfishAddress returns the address of a BMC for fencing: redfish+https://<host>:<port>/redfish/<path of the
// system>. Other clients than the Bare Metal Operator need all parts of it. Neither the address nor the error
// has credentials or a query. The error is a part of a message.
func RedfishAddress(address string) (string, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" { // without err, which quotes credentials
		return "", errors.New("is no URL such as redfish://bmc.example.com/redfish/v1/Systems/1")
	}
	driver, transport, _ := strings.Cut(parsed.Scheme, "+")
	port := parsed.Port()
	if port == "" {
		port = "443"
	}
	path := strings.TrimRight(parsed.EscapedPath(), "/")
	switch {
	case !slices.Contains(redfishDrivers, driver):
		return "", fmt.Errorf("has the driver %q, which does not speak Redfish: use one of %s", driver, strings.Join(redfishDrivers, ", "))
	case transport != "" && transport != "https":
		return "", fmt.Errorf("is reached by %q, and only HTTPS is used for fencing", transport)
	case parsed.Hostname() == "":
		return "", errors.New("names no host")
	case !systemPath.MatchString(path):
		return "", errors.New("has no path of a system: add it, such as /redfish/v1/Systems/1")
	}
	return "redfish+https://" + net.JoinHostPort(parsed.Hostname(), port) + path, nil
}
