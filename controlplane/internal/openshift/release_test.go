package openshift

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

func TestCheckSupported(t *testing.T) {
	for version, supported := range map[string]bool{
		"4.13.50": false, "4.14.0": true, "4.14.0-rc.1": true, "4.22.1": true, "5.0.0": true,
		"3.11.0": false,
	} {
		v, err := versions.ParseRelease(version)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(CheckSupported(v, Settings{}) == nil).To(Equal(supported), version)
	}
}
