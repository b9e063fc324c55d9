package assistedsim

import (
	"net/http"
	"strconv"
)

// downloads serves the downloads of an InfraEnv and no other part of the REST API.
func (s *Simulator) downloads() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/assisted-install/v2/infra-envs/{id}/downloads/files", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		record := s.infraEnvByID(r.PathValue("id"))
		s.mu.Unlock()
		if record == nil || s.opts.BeforeDownload == nil {
			s.downloadFile(w, r)
			return
		}
		s.opts.BeforeDownload(record.key, http.HandlerFunc(s.downloadFile)).ServeHTTP(w, r)
	})
	return mux
}

func (s *Simulator) downloadFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	record := s.infraEnvByID(r.PathValue("id"))
	var fault http.HandlerFunc
	if record != nil {
		s.downloaded[record.key.Namespace]++
		fault = s.faults.downloads[record.key]
		if fault == nil {
			fault = s.faults.downloads[wholeNamespace(record.key)]
		}
		copied := *record
		record = &copied
	}
	s.mu.Unlock()
	switch {
	case fault != nil:
		fault(w, r)
		return
	case s.opts.Auth == AuthLocal && !s.tokens.Valid(presentedToken(r)):
		// The real service does not check the InfraEnv of a token on this path.
		http.Error(w, `{"code":401,"message":"unauthenticated for invalid credentials"}`, http.StatusUnauthorized)
		return
	case record == nil:
		http.Error(w, `{"code":"404","reason":"InfraEnv not found"}`, http.StatusNotFound)
		return
	case r.URL.Query().Get("file_name") != "discovery.ign":
		http.Error(w, `{"code":"400","reason":"file_name in query should be one of [discovery.ign]"}`, http.StatusBadRequest)
		return
	}
	data, err := s.discoveryIgnition(record)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set("Last-Modified", record.updatedAt.UTC().Format(http.TimeFormat))
	_, _ = w.Write(data)
}

// Downloads returns the number of requests for files of the InfraEnvs in a namespace, including failed ones.
// Hosts do not use this path: see [Simulator.Image].
func (s *Simulator) Downloads(namespace string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.downloaded[namespace]
}

// presentedToken returns the token from the query or from the header of the service. The service does not
// accept bearer tokens.
func presentedToken(r *http.Request) string {
	if key := r.URL.Query().Get("api_key"); key != "" {
		return key
	}
	return r.Header.Get("X-Secret-Key")
}
