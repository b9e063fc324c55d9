package openshift

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	// maxClusterName is the limit of OpenShift's installer (pkg/validate, ClusterName), which assisted-service does not check: all hosts would be discovered before the
	// installation fails on it.
	maxClusterName = 54
	// maxAppsDomain is the limit of assisted-service (internal/dns, ValidateDNSName) for apps.<clusterName>.<baseDomain>: a route has a label of its own below it.
	maxAppsDomain = 191
)

var (
	clusterName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	// subdomain is what assisted-service takes as the name of a cluster on platform none alone.
	subdomain = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
)

// CheckClusterName returns an error for a name that neither assisted-service nor OpenShift's installer takes as the first part of a cluster's domain. onNone: the
// platform is none.
func CheckClusterName(name, baseDomain string, onNone bool) error {
	const action = "Set config.clusterName"
	switch domain := strings.Join([]string{"apps", name, baseDomain}, "."); {
	case len(name) > maxClusterName:
		return fmt.Errorf("cluster name %s has %d characters (at most %d). %s", name, len(name), maxClusterName, action)
	case onNone && !subdomain.MatchString(name), !onNone && !clusterName.MatchString(name):
		return fmt.Errorf("%s cannot be the name of a cluster: it may have lower-case letters, digits and hyphens, and on platform none dots. %s", name, action)
	case len(domain) > maxAppsDomain:
		return fmt.Errorf("the domain %s has %d characters (at most %d). %s to a shorter name", domain, len(domain), maxAppsDomain, action)
	}
	return nil
}
