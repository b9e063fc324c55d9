// govulncheck, and a copy of its database. No package of golang.org/x/vulndb is imported, only its data is read. So "go mod
// tidy" would remove the requirement.
module github.com/openshift-agent/cluster-api-provider-openshift-agent/test/tools/vulnerabilities

go 1.26.0

require (
	github.com/onsi/gomega v1.42.1
	golang.org/x/mod v0.42.0
	golang.org/x/vuln v1.9.0
)

require (
	github.com/google/go-cmp v0.7.0 // indirect
	go.yaml.in/yaml/v3 v3.0.4 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/telemetry v0.0.0-20261010193011-f71dc92da45e // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/tools v0.52.0 // indirect
	golang.org/x/vulndb v0.0.0-20261105234957-e22db6528018 // indirect
)
