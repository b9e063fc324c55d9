package openshift

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	// maxClusterName is the limit of OpenShift's installer (pkg/validate, ClusterName). assisted-service does
	// not check it: the installation would fail only after the discovery of all hosts.
	maxClusterName = 54
	// maxAppsDomain is the limit of assisted-service (internal/dns, ValidateDNSName) for
	// apps.<clusterName>.<baseDomain>. Routes need a label below it.
	maxAppsDomain = 191
)

var (
	clusterName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	// subdomain matches cluster names that assisted-service accepts only on platform none.
	subdomain = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
)

// CheckClusterName returns an error for a name that assisted-service or OpenShift's installer refuses as the
// first part of a cluster's domain. onNone is true on platform none.
func CheckClusterName(name, baseDomain string, onNone bool) error {
	const action = "Set config.clusterName"
	switch domain := strings.Join([]string{"apps", name, baseDomain}, "."); {
	case len(name) > maxClusterName:
		return fmt.Errorf("cluster name %s has %d characters (at most %d). %s", name, len(name), maxClusterName, action)
	case onNone && !subdomain.MatchString(name), !onNone && !clusterName.MatchString(name):
		return fmt.Errorf("%s cannot be the name of a cluster: it may have lower-case letters, digits and hyphens, and on platform none dots. %s",
			name, action)
	case len(domain) > maxAppsDomain:
		return fmt.Errorf("the domain %s has %d characters (at most %d). %s to a shorter name",
			domain, len(domain), maxAppsDomain, action)
	}
	return nil
}
