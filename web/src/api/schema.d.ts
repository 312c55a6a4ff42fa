// Written by `npm run api` from schemas/openapi.json.

export interface paths {
    "/api/approvals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the open approvals of the organization. */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Approvals"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/approvals/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an open approval with the items to approve. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Approval"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/approvals/{id}/decide": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approve or deny an open approval.
         * @description One that is not open is answered with 409, and one that the execution does not have with 404. `details.approval` has the
         *     reason (`decided`, `expired`, `ended`, `not_yet_open`, `unknown`), and `details.open` the ids of those that are open.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Decision"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CommandResult"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the audit log of the organization in ascending order. */
        get: {
            parameters: {
                query?: {
                    /** @description Returns entries after this number only. */
                    after?: number;
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Entries"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/audit/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export the whole audit log as NDJSON, with the signed head first, for verification elsewhere with `mainspring audit
         *     verify`. The export adds an entry to the log. Requests with a cookie need proof of origin, as changes do.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/x-ndjson": string;
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/audit/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Verify the audit log: detects entries that were changed, removed, inserted, or truncated at the end. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Verified"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/budgets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the budgets of the organization and its workflows, with what is left in the current period. Those of the settings
         *     file of the server are among them.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Budgets"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        /**
         * Set the budget of the organization, or of a workflow, for each day or month. It reaches running agents within five
         *     minutes, and counts what was used in the period before. Raises that people have approved end.
         */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SetBudget"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BudgetBody"];
                    };
                };
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BudgetBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/budgets/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove a budget. Running agents are no longer limited by it within five minutes. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/definitions/drawing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Draw the plan of a definition as an SVG picture, the same as `mainspring plan --format svg`. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Definition"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "image/svg+xml": string;
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/definitions/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Compile a definition to its plan: steps, edges and policies, and the `warnings` of the validation. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Definition"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": Record<string, unknown>;
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/definitions/validate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Validate a definition: `{ok, status: valid | invalid, workflowHash, errors, warnings, stepOrder}`. An invalid
         *     definition also returns 200. `warnings` include approvers who currently cannot decide.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Definition"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": Record<string, unknown>;
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/dev/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the files that `mainspring dev` watches, with their mistakes. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DevFileList"];
                    };
                };
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/encryption-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the keys that encrypt stored secrets, with the number of values under each. Requires an operator of the
         *     installation.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["EncryptionKeysBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/encryption-keys/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make the newest key of this node's key file the primary one, and encrypt stored secrets again, some rows at a time.
         *     Repeat the request until `done` is true. Requires an operator of the installation.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Rotate"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Rotated"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/event-subscriptions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the event subscriptions of the organization. Secrets are not returned. */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Subscriptions"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Subscribe an endpoint to events. Deliveries are CloudEvents, signed by Standard Webhooks. A generated secret is in this
         *     response only.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NewSubscription"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SubscriptionBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/event-subscriptions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an event subscription. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        /** @description Version of the resource, for `If-Match` */
                        ETag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SubscriptionBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Delete an event subscription with its failed deliveries. Events that wait are not sent. */
        delete: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `ETag` of an earlier response. The change fails with 412 if the resource has changed since. `*` or no header matches every version */
                    "If-Match"?: string;
                };
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                412: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        /**
         * Change fields of an event subscription. Omitted fields keep their values. With `If-Match`, only if the version matches
         *     the `ETag`.
         */
        patch: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `ETag` of an earlier response. The change fails with 412 if the resource has changed since. `*` or no header matches every version */
                    "If-Match"?: string;
                };
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SubscriptionDraft"];
                };
            };
            responses: {
                200: {
                    headers: {
                        /** @description Version of the resource, for `If-Match` */
                        ETag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SubscriptionBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                412: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/api/event-subscriptions/{id}/disable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Disable an event subscription. Events that wait, and those until it is enabled again, are not sent. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NoFields"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SubscriptionBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/event-subscriptions/{id}/enable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Enable an event subscription, and end its pause. Events that waited are sent at once. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NoFields"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SubscriptionBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/event-subscriptions/{id}/failed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the failed deliveries of an event subscription. There are at most 1,000. */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FailedEvents"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/event-subscriptions/{id}/failed/{failedId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove a failed delivery from the list. Its event is not sent. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    failedId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/event-subscriptions/{id}/failed/{failedId}/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send an event of a failed delivery once more, also while the subscription is paused. Removes it from the list if it is
         *     delivered.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    failedId: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NoFields"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DeliveryResult"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/event-subscriptions/{id}/rotate-secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replace the secret by a generated one, which is in this response only. Deliveries are signed with both for 24 hours. In
         *     this time a further rotation is a 409, unless it is forced.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SecretRotation"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SubscriptionBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/event-subscriptions/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send an event of the type `workflow.subscription.test` once, also while the subscription is disabled or paused. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NoFields"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DeliveryResult"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the executions of the organization, newest first. */
        get: {
            parameters: {
                query?: {
                    /** @description Statuses to return, separated by commas. */
                    status?: string;
                    /** @description Id or slug of a workflow, to return its executions only. */
                    workflowId?: string;
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Executions"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an execution. */
        get: {
            parameters: {
                query?: {
                    /**
                     * @description Optional parts, separated by commas: `steps`, `workflowSnapshot` (also requires `workflows:read`),
                     *     `runtimeState` and `progress`.
                     */
                    include?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ExecutionBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{id}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Approve or deny an open approval of an execution. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Approve"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CommandResult"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel an execution. Running attempts are stopped; the status is `cancelled` when they and the steps of `finally` have
         *     ended. A second cancel skips what is left of `finally`.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Cancel"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CommandResult"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{id}/complete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Report the end of an execution, from its session.
         * @description The server carries executions out itself, so a report changes nothing. One that agrees with an ended execution is
         *     accepted, and every other is refused (409).
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CommandResult"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{id}/end": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End a quarantined execution without its journal. It is `failed` with `ended_by_operator`.
         * @description The journal is kept unchanged. A sealed note beside it names the member who ended the execution and the reason;
         *     verification of the execution shows it. Child executions that it waits for are cancelled.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Reason"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Repaired"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{id}/erase": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Erase values of an ended execution permanently. The hash chain of the journal stays valid, and verification lists
         *     the erased values. The audit log has the member and the reason.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Erase"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Erased"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Stream the events of an execution until it ends, from the start or after `Last-Event-ID`. The id of an event is
         *     `FRAME.INDEX`, its position in the journal. A client that reads too slowly is disconnected and can reconnect with
         *     its last id.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Same as the header `Last-Event-ID`, for clients that cannot send headers. */
                    lastEventId?: string;
                    /** @description Also sends `step.progress` events with the texts of models while they grow. They have no id and are not stored. */
                    progress?: boolean;
                };
                header?: {
                    /** @description Id of the last event that the client received */
                    "Last-Event-ID"?: string | null;
                };
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": string;
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{id}/journal": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the frames of an execution's journal with the hashes that chain them. */
        get: {
            parameters: {
                query?: {
                    /** @description Returns frames from this sequence on. */
                    from?: number;
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Journal"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{id}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a message to an agent. The agent of the conversation reads it at its next turn, or the next agent does when it
         *     begins.
         * @description The responses are those of a signal: `accepted` means that the message is durable in the inbox, and 409 that it was
         *     rejected, with the reason.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CommandResult"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{id}/receipts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the receipts of an execution, and check their signatures.
         * @description Each page reads the whole journal, and checks the signatures of its own receipts. A cursor names the last receipt of its
         *     page, so receipts that arrive in the meantime repeat none and skip none of the journal.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Receipts"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{id}/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Release a quarantined execution: verifies its journal and resumes it.
         * @description An execution whose parent has continued without it is cancelled instead.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Reason"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Repaired"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{id}/signal": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a named signal to an execution. A signal that arrives before its step is buffered.
         * @description A signal for which no step of the execution ever waits is rejected with 409, and `details.signals` has the names for which
         *     its steps wait.
         *
         *     A response with a status of the execution means that the signal was processed, now or by an earlier request with its
         *     id. `accepted` means that the signal is durable in the inbox. It is processed later, unless the execution ends or
         *     reaches its limit of signals before that; a repeated request with the same id returns the result. 409 means that the
         *     signal was rejected, with the reason.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Signal"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CommandResult"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{id}/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Report the status of an execution, from its session.
         * @description The text in `message` is shown with `include=progress` by the server that receives it, until the execution ends. It is
         *     not kept, and decides nothing.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CommandResult"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{id}/steps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Attempts of an execution in the order of their start.
         * @description Each page reads the whole journal. Without `limit` a page is bounded by bytes only.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items, 1 to 200; by default bounded by the size of the response only. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Steps"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{id}/wait": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Wait until an execution has ended or only approvals are open, and return it; after the timeout, in its current
         *     state.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Timeout in milliseconds, up to 60,000; default 30,000. */
                    timeoutMs?: number;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ExecutionBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the member and the permissions of the credential. Requires no permission. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Me"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the members of the organization. */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Members"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/members/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a member. The `ETag` also changes when a credential of the member is created. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        /** @description Version of the resource, for `If-Match` */
                        ETag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MemberBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        /**
         * Create or update a member. Omitted fields keep their values. A member who becomes an owner or an operator loses all
         *     existing credentials. With `If-Match`, only if the version matches the `ETag`.
         */
        put: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `ETag` of an earlier response. The change fails with 412 if the resource has changed since. `*` or no header matches every version */
                    "If-Match"?: string;
                };
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Put"];
                };
            };
            responses: {
                200: {
                    headers: {
                        /** @description Version of the resource, for `If-Match` */
                        ETag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MemberBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                412: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        post?: never;
        /** Remove a member and invalidate the member's credentials. The workflows stay, and admins can change them. */
        delete: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `ETag` of an earlier response. The change fails with 412 if the resource has changed since. `*` or no header matches every version */
                    "If-Match"?: string;
                };
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                412: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the models of the settings file that the organization may use. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Models"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models/{name}/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a short question to a model, which costs a few tokens. A model that does not answer within 30 seconds is a check with
         *     `ok: false`. At most one check at a time.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ModelCheck"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/organization": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the caller's organization. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        /** @description Version of the resource, for `If-Match` */
                        ETag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OrganizationBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Change settings of the caller's organization. */
        patch: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `ETag` of an earlier response. The change fails with 412 if the resource has changed since. `*` or no header matches every version */
                    "If-Match"?: string;
                };
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Update"];
                };
            };
            responses: {
                200: {
                    headers: {
                        /** @description Version of the resource, for `If-Match` */
                        ETag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OrganizationBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                412: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/api/organizations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create an organization with an owner and a credential of the owner. Requires an operator of the installation.
         *     Executions cannot start until the feature `workflow_runtime_v1` is enabled, by `features` here or by `PATCH
         *     /api/organization`.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateOrganization"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Created"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/policy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the policy for calls of workflows. The strictest rule of all levels decides. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        /** @description Version of the resource, for `If-Match` */
                        ETag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CallPolicy"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        /**
         * Set the rules of the organization for calls of its workflows. They can tighten the rules of the installation, and not loosen
         *     them. Executions that have started keep the policy of their start.
         */
        put: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `ETag` of an earlier response. The change fails with 412 if the resource has changed since. `*` or no header matches every version */
                    "If-Match"?: string;
                };
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SetCallPolicy"];
                };
            };
            responses: {
                200: {
                    headers: {
                        /** @description Version of the resource, for `If-Match` */
                        ETag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CallPolicy"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                412: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/quarantine": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the quarantined executions of the organization. */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Quarantine"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/scenarios/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run scenarios on virtual time with scripted effects; nothing is performed. At most 200 cases in 10 s. A path in a
         *     scenario means `definition`, or the definition of the workflow `workflowId`. The workflows that it starts are those of
         *     the case, else the stored ones.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RunScenarios"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ScenarioResults"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/secrets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the secrets of the organization. Values are not returned. */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Secrets"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/secrets/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Set a secret: create it, or replace its value and its workflows. It is stored encrypted and never returned. */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SetSecret"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SecretBody"];
                    };
                };
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SecretBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        post?: never;
        /** Remove a secret. Steps that use it fail from then on. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign in with a browser. The session cookie is valid until the token, the member or the session ends, at most 12
         *     hours. Changes with the cookie must come from the server's own base URL.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Begin"];
                };
            };
            responses: {
                201: {
                    headers: {
                        /** @description The session cookie */
                        "Set-Cookie"?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Session"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        /** Sign out and invalidate the session cookie. Without a cookie the request has no effect. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        /** @description Deletes the session cookie */
                        "Set-Cookie"?: string;
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the sessions of the organization, newest first. Sessions of executions are only listed if `purpose` has
         *     `workflow`. This server has no interactive and no orchestrator sessions, so there are none of them to list.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Purposes to return, separated by commas: `interactive`, `orchestrator`, `workflow`; by default the first two. */
                    purpose?: string;
                    /** @description Statuses to return, separated by commas: `hibernated`, `running`, `terminated`. */
                    status?: string;
                    /** @description Pattern of session keys, such as `agent:*:workflow:nightly-*:run:*`. */
                    key?: string;
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ExecutionSessions"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/reap": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reap sessions: revoke their credentials and remove their workspaces on this server. Only sessions of ended executions
         *     are taken; executions and journals stay.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Reap"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ReapedSessions"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the session of an execution, by its id or its key. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ExecutionSession"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{id}/attempts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the sessions of the step attempts of an execution, by the id or the key of its session. Each page reads the
         *     whole journal.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AttemptSessions"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the caller's credentials; for admins, all credentials of the organization. */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Tokens"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        /** Create a credential. A credential with scopes cannot create one with further scopes. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateToken"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Created"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revoke a credential. It becomes invalid immediately. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/tool-servers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the tool servers of the settings file. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ToolServers"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/tool-servers/{name}/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Connect to a tool server, and list its tools with their classes and verdicts. A server that does not answer within 30
         *     seconds is a check with `ok: false`. At most one check at a time.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ToolServerCheck"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/triggers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the triggers of the organization. */
        get: {
            parameters: {
                query?: {
                    /** @description Id or slug of a workflow, to return its triggers only. */
                    workflowId?: string;
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Triggers"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        /** Create a trigger of a workflow. Its executions run as the owner of the workflow. Also requires `executions:start`. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NewTrigger"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TriggerBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                501: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/triggers/manual/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start a workflow. The start is durable before the response.
         * @description With `wait` the response is sent when the execution has ended or only approvals are open (200), or after the timeout
         *     (202, with the status `running`). The execution continues after a timeout.
         */
        post: {
            parameters: {
                query?: {
                    /**
                     * @description Milliseconds, up to 60,000, to wait until the execution has ended or only approvals are open. The response is
                     *     then the result envelope with its steps. Also requires `executions:read`.
                     */
                    wait?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            responses: {
                /** @description The execution was started by an earlier request with the same id, or `wait` was set */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Started"];
                    };
                };
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Started"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/triggers/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a trigger. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        /** @description Version of the resource, for `If-Match` */
                        ETag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TriggerBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Delete a trigger. Its executions are kept. */
        delete: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `ETag` of an earlier response. The change fails with 412 if the resource has changed since. `*` or no header matches every version */
                    "If-Match"?: string;
                };
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                412: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        /**
         * Change fields of a trigger. Omitted fields keep their values. With `If-Match`, only if the version matches the `ETag`.
         *     Also requires `executions:start`.
         */
        patch: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `ETag` of an earlier response. The change fails with 412 if the resource has changed since. `*` or no header matches every version */
                    "If-Match"?: string;
                };
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TriggerDraft"];
                };
            };
            responses: {
                200: {
                    headers: {
                        /** @description Version of the resource, for `If-Match` */
                        ETag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TriggerBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                412: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                501: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/api/triggers/{id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the newest runs of a trigger with their outcomes: deliveries, ticks and requests. Requests that fail
         *     verification are listed once a minute.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Deliveries"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/triggers/{id}/deliveries/{deliveryId}/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Deliver the event of an earlier run again, through the present mapping. It starts another execution as the owner of
         *     the workflow, with the permissions that the caller has too. Only the owner and admins may do that. A refused delivery
         *     cannot be repeated, since its body is not kept. A trigger with the target `orchestrator` sends its present prompt as a
         *     new message that names the earlier one.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    deliveryId: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Nothing"];
                };
            };
            responses: {
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Redelivered"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/triggers/{id}/disable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Disable a trigger: its webhook refuses deliveries, and its ticks do not run. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NoFields"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TriggerBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/triggers/{id}/enable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Enable a trigger. Ticks of the time in which it was disabled do not run. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NoFields"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TriggerBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/triggers/{id}/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start the workflow of a trigger as the caller, with the variables that its mapping takes from the event. A trigger with
         *     the target `orchestrator` sends its prompt; it has no variables, and only its owner and admins may run it. A disabled
         *     trigger can be run too.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RunBody"];
                };
            };
            responses: {
                /** @description An earlier request with the same id was accepted */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunResult"];
                    };
                };
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunResult"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/triggers/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Apply the variable mapping of a trigger to an event. Starts nothing. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["EventBody"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Mapped"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show what the agents of the organization have used, by workflow or in total, for each day or month. A call counts for
         *     the workflow of the execution that made it, on the day on which it began.
         */
        get: {
            parameters: {
                query?: {
                    /** @description `organization` (default) or `workflow`. */
                    by?: string;
                    /** @description `month` (default) or `day`, in UTC. */
                    period?: string;
                    /** @description The first day, as 2026-11-01; default the first of the current month. */
                    from?: string;
                    /** @description The last day, as 2026-11-30; default today. */
                    to?: string;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["UsagePage"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the workflows of the organization. */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Workflows"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/sync": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Save a complete workflow: creates it, or replaces the one with this id or slug. */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `ETag` of an earlier response. The change fails with 412 if the resource has changed since. `*` or no header matches every version */
                    "If-Match"?: string;
                };
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Whole"];
                };
            };
            responses: {
                200: {
                    headers: {
                        /** @description Version of the resource, for `If-Match` */
                        ETag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SavedBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                412: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/sync-all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Save the complete set of the caller's workflows, and delete the others. The change is atomic, with triggers, scenarios
         *     and settings of the organization, which change only if the request names them.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SyncAll"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Synced"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                501: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a workflow by its id or slug. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        /** @description Version of the resource, for `If-Match` */
                        ETag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WorkflowBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        /**
         * Update fields of a workflow. Omitted fields keep their values. With `If-Match`, only if the version matches the
         *     `ETag`.
         */
        put: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `ETag` of an earlier response. The change fails with 412 if the resource has changed since. `*` or no header matches every version */
                    "If-Match"?: string;
                };
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Draft"];
                };
            };
            responses: {
                200: {
                    headers: {
                        /** @description Version of the resource, for `If-Match` */
                        ETag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SavedBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                412: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        post?: never;
        /** Delete a workflow and its triggers. Its executions and its history are kept. */
        delete: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `ETag` of an earlier response. The change fails with 412 if the resource has changed since. `*` or no header matches every version */
                    "If-Match"?: string;
                };
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                412: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/drain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** End the drain of a workflow, as its owner or as an admin: the executions that wait begin beside the older ones. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WorkflowBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/drawing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Draw the plan of a workflow as an SVG picture. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "image/svg+xml": string;
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/executions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the executions of a workflow, newest first. */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Executions"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the versions of a workflow, newest first; also of a deleted workflow. */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["History"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/proposals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List proposed changes of a workflow, newest first. */
        get: {
            parameters: {
                query?: {
                    /** @description Only proposals with this status. */
                    status?: components["schemas"]["ProposalStatus"];
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Proposals"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Propose a change of a workflow. Its definition must have `constraints.allowSelfModification`. A session may propose
         *     for the workflow of its execution.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateProposal"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DetailedProposal"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/proposals/write": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Have a language model of the server write a change, and propose it. The model is asked again, at most twice, with the
         *     mistakes that the compiler finds. The answer takes as long as the model does, up to some minutes. Sessions and agents
         *     cannot: they send definitions.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["WriteProposal"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DetailedProposal"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                501: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                502: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/proposals/{proposalId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a proposal with its difference, its findings and its risk. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    proposalId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DetailedProposal"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/proposals/{proposalId}/apply": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Apply an approved proposal, as the owner of the workflow or as an admin. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    proposalId: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ApplyRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppliedProposal"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/proposals/{proposalId}/migration": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the migration of running executions to the definition of a proposal: a preview before it is applied, and the progress
         *     if it was applied with `whileRunning: migrate`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of executions, 1 to 50; default 20. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    id: string;
                    proposalId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MigrationBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/proposals/{proposalId}/review": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Approve or reject a proposal, as the owner of the workflow or as an admin. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    proposalId: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ReviewRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DetailedProposal"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/proposals/{proposalId}/shadow": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the report of the last shadow run of a proposal. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    proposalId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ShadowBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Replay recorded executions with the definition of a pending proposal, as its author, the owner of the workflow or an
         *     admin. No effect is performed.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    proposalId: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ShadowRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ShadowBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/rollback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Return a workflow to a definition of its history. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RollbackRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RolledBack"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/rollouts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the rollouts of a workflow, newest first. */
        get: {
            parameters: {
                query?: {
                    /** @description Maximum number of items, 1 to 200; default 50. */
                    limit?: number;
                    /** @description `nextCursor` of the previous page. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Rollouts"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/rollouts/{rolloutId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a rollout with the figures of both sides. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    rolloutId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RolloutBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/rollouts/{rolloutId}/abort": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Abort a rollout, as the owner of the workflow or as an admin: no new start takes the candidate. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    rolloutId: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DecideRollout"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RolloutBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/rollouts/{rolloutId}/promote": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Promote the candidate of a rollout, as the owner of the workflow or as an admin: all new starts take it. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    rolloutId: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DecideRollout"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RolloutBody"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/scenarios": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the scenarios of a workflow. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        /** @description Version of the resource, for `If-Match` */
                        ETag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ScenariosBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        /**
         * Replace the scenarios of a workflow, as its owner or as an admin, and run them. They are saved if all of them can be
         *     read. A proposal is applied only if they hold with its definition.
         */
        put: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `ETag` of an earlier response. The change fails with 412 if the resource has changed since. `*` or no header matches every version */
                    "If-Match"?: string;
                };
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SaveScenarios"];
                };
            };
            responses: {
                200: {
                    headers: {
                        /** @description Version of the resource, for `If-Match` */
                        ETag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SavedScenarios"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                412: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        post?: never;
        /** Remove the scenarios of a workflow, as its owner or as an admin. */
        delete: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `ETag` of an earlier response. The change fails with 412 if the resource has changed since. `*` or no header matches every version */
                    "If-Match"?: string;
                };
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                412: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/scenarios/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Run the scenarios of a workflow, with its definition or with another one. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RunStored"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ScenarioResults"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/approve/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Show an approval as a web page, with a form for members who may decide. The request has no side effect. */
        get: {
            parameters: {
                query?: {
                    /** @description `1` after a link on another site, because browsers send no cookie with the first request. */
                    again?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
            };
        };
        put?: never;
        /** Submit the form of the approval page. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/x-www-form-urlencoded": components["schemas"]["DecisionForm"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The credential is missing or invalid (`UNAUTHORIZED`) */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The credential lacks the permission (`FORBIDDEN`) */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The resource does not exist, or belongs to another organization (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Liveness: the process responds. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Health"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Readiness: the engine runs and the store responds. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Health"];
                    };
                };
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sign-in": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sign in with a form, and redirect to the requested page. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/x-www-form-urlencoded": components["schemas"]["EnterForm"];
                };
            };
            responses: {
                303: {
                    headers: {
                        /** @description The session cookie */
                        "Set-Cookie"?: string;
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sign-in/oidc": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Start a sign-in with the configured OpenID Connect provider. The provider redirects the browser to
         *     `/sign-in/oidc/callback`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Path of this server to return to, such as `/approve/…`; default `/`. */
                    next?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Redirect to the provider */
                303: {
                    headers: {
                        /** @description URL of the provider */
                        Location?: string;
                        /** @description Cookie that binds the sign-in to the browser */
                        "Set-Cookie"?: string;
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description No provider is configured (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sign-in/oidc/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Callback of the OpenID Connect provider. Signs in the identified member with the same cookie as `POST /api/session`,
         *     and redirects to the requested page.
         */
        get: {
            parameters: {
                query?: {
                    /** @description State of the authorization request. */
                    state?: string;
                    /** @description Authorization code, exchanged for the ID token. */
                    code?: string;
                    /** @description Error code of the provider, instead of an authorization code. */
                    error?: string;
                    /** @description Issuer of the response (RFC 9207). */
                    iss?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        /** @description The session cookie */
                        "Set-Cookie"?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The provider's response is invalid */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The identity may not sign in here */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description No provider is configured (`NOT_FOUND`) */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Receive a delivery with GET, at a webhook with a secret or a required header. It has no body. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    path: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Delivered"];
                    };
                };
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Delivered"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                405: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        /** Receive a delivery with PUT. */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    path: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": unknown;
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Delivered"];
                    };
                };
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Delivered"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                405: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        /**
         * Receive a delivery with POST. The start is durable before the response.
         * @description The path names the webhook. The trigger says which method, signature and headers a delivery must have. A repeated
         *     delivery starts nothing: it is recognized by `webhook-id`, `X-GitHub-Delivery`, `X-Delivery-Id` or `Idempotency-Key`,
         *     by the id of the event for Stripe and Slack, else by its content for 24 hours. The ping of GitHub and the URL verification of
         *     Slack are answered with 200 and start nothing.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    path: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": unknown;
                };
            };
            responses: {
                /** @description An earlier delivery started the execution, or it has ended within the wait */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Delivered"];
                    };
                };
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Delivered"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                405: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        /** Receive a delivery with PATCH. */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    path: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": unknown;
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Delivered"];
                    };
                };
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Delivered"];
                    };
                };
                /** @description The request is malformed or invalid (`VALIDATION_ERROR`) */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                405: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body did not arrive within a minute (`REQUEST_TIMEOUT`) */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The body is too large (`PAYLOAD_TOO_LARGE`) */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`) */
                415: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description Too many requests with this credential, or without one from this address (`RATE_LIMITED`) */
                429: {
                    headers: {
                        /** @description Maximum burst of requests */
                        "RateLimit-Limit"?: number;
                        /** @description Requests left in the current burst */
                        "RateLimit-Remaining"?: number;
                        /** @description Seconds until the full burst is available again */
                        "RateLimit-Reset"?: number;
                        /** @description Seconds until the next request is accepted */
                        "Retry-After"?: number;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
                /** @description The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`) */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemBody"];
                    };
                };
            };
        };
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description An accepted prompt for the orchestrator. */
        AcceptedPrompt: {
            /** @description True if an earlier request with the same id was accepted. */
            existed: boolean;
            /** @description Id of the prompt, the same as in `webhook-id`. */
            promptId: string;
        };
        /** @description The rollout of a workflow. */
        ActiveRolloutBody: {
            /** @description `workflowHash` of the candidate in the history. */
            candidateHash: string;
            /** @description Semantic version of the candidate. */
            candidateVersion: string;
            /** @description Id, as in `/api/workflows/{id}/rollouts/{rolloutId}`. */
            id: string;
            /**
             * Format: int32
             * @description Percentage of the starts that take the candidate.
             */
            percent: number;
            /** @description The applied proposal. */
            proposalId: string;
        };
        /** @description An application of a proposal. */
        AppliedBody: {
            /** @description Time, RFC 3339. */
            at: string;
            /** @description Id of the member who applied it. */
            by: string;
            /** @description The rollout that it began; null if all starts took the definition at once. */
            rolloutId?: string | null;
            /** @description The version of the workflow. */
            version: string;
            /** @description Treatment of the executions that ran: `pin`, `strict`, `drain` or `migrate`; null in proposals of older releases. */
            whileRunning?: string | null;
        };
        /** @description An applied proposal with the state of the workflow. */
        AppliedProposal: {
            /** @description State after the application. */
            proposal: components["schemas"]["DetailedProposal"];
            /** @description The workflow after the change. */
            workflow: components["schemas"]["SavedBody"];
        };
        /** @description An application. */
        ApplyRequest: {
            rollout?: components["schemas"]["RolloutPlan"] | null;
            whileRunning?: components["schemas"]["WhileRunning"] | null;
        };
        /** @description An open approval. */
        Approval: components["schemas"]["ApprovalTimeout"] & components["schemas"]["ApprovalLinks"] & {
            /** @description Named approvers with their current membership. Without names, the execution's owner and the admins decide. */
            approvers: components["schemas"]["Approver"][];
            /**
             * @description True if enough approvers can currently approve. Otherwise the approval can be denied, the execution cancelled,
             *     or the timeout expires, unless a missing approver becomes a member with a role that decides.
             */
            canBeApproved: boolean;
            /** @description Execution, as in `/api/executions/{id}`. */
            executionId: string;
            /**
             * @description The approval: `{stepId, prompt, items, approvers, count, approvedBy, expiresAt}`, with `resumeToken` for callers
             *     who may decide.
             */
            gate: Record<string, unknown>;
            /** @description Id of the approval: `EXECUTION:STEP:GATE`. In a path, a `#` of it is `%23`. */
            id: string;
            /** @description True if the caller may decide. */
            mayDecide: boolean;
            /** @description The question to the approvers. */
            message: string;
            /** @description Start of the approval, RFC 3339. */
            requestedAt: string;
            /** @description `pending`. */
            status: string;
            /** @description Id of the step that waits. */
            stepId: string;
            /** @description Id of the member who owns the execution. */
            userId?: string | null;
            /** @description Workflow, as in `/api/workflows/{id}`. */
            workflowId?: string | null;
            /**
             * @description Display name of the workflow when the execution was started, else the name in the definition; null if neither
             *     exists.
             */
            workflowName?: string | null;
        };
        /** @description The places where an approval is decided. */
        ApprovalLinks: {
            /** @description Path of the API: `/api/approvals/ID/decide`, with the id encoded. */
            decideUrl: string;
            /** @description URL of the web page with the approval. It requires a sign-in. */
            url: string;
        };
        /** @description The decision that is made without a member. */
        ApprovalTimeout: {
            /** @description Decision at the timeout: `approve` or `deny`. */
            defaultAction: string;
            /** @description Time of the default decision, RFC 3339. */
            timeoutAt: string;
        };
        /** @description A page of open approvals. */
        Approvals: {
            /** @description Open approvals, those of the newest executions first. */
            approvals: components["schemas"]["Approval"][];
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
        };
        /** @description A decision of an open approval. */
        Approve: {
            /** @description True to approve, false to deny. */
            approve: boolean;
            /** @description With a denial of a form: true if the person cancels, and does not only decline. */
            cancel?: boolean;
            /** @description Content of the form that a tool server asks for, as an object from fields to values; only with an approval. */
            content?: unknown;
            /** @description Reason, recorded in the journal and the audit log. */
            reason?: string | null;
            /** @description Resume token of the approval, as the execution shows it to callers who may decide. */
            resumeToken: string;
        };
        /** @description An approver named by the approval. */
        Approver: {
            /**
             * @description True if a decision of the approver currently counts: a member with a role that decides, who has not approved
             *     yet.
             */
            canDecide: boolean;
            /** @description True if the approver has already approved. */
            hasApproved: boolean;
            role?: components["schemas"]["Role"] | null;
            /** @description Id of the approver, as written in the approval. */
            userId: string;
        };
        /** @description An attempt of a step. */
        Attempt: {
            /**
             * Format: int32
             * @description Number of the attempt, from 1; 0 for a step that was skipped or failed before its first attempt.
             */
            attempt: number;
            /** @description Cause of the attempt. */
            because: string;
            /** @description Id of the child execution that the attempt started. */
            childExecutionId?: string;
            /** @description End of the attempt, RFC 3339; null if it has not ended. */
            completedAt?: string | null;
            /** @description Decisions of an approval step. */
            decisions?: components["schemas"]["Decided"][];
            /** @description Error of a failed attempt: `{code, class, message, details}`; null otherwise. */
            error: Record<string, unknown> | null;
            /** @description Resolved parameters; any JSON value. */
            input: unknown;
            /** @description Console output of the function: `{level, text}`. */
            log?: Record<string, unknown>[];
            /** @description Reason why the attempt was skipped, retried, not retried, cancelled or decided. */
            note?: string;
            /** @description Output of a completed attempt, any JSON value; null otherwise. */
            output: unknown;
            /** @description Start of the attempt, RFC 3339. */
            startedAt: string;
            /** @description `running`, `waiting`, `waiting_approval`, `completed`, `failed`, `skipped` or `cancelled`. */
            status: string;
            /** @description Step instance, such as `fetch[3].parse`. */
            stepId: string;
        };
        /** @description Output of a running script. */
        AttemptProgressBody: {
            /**
             * Format: int32
             * @description Number of the attempt, from 1.
             */
            attempt: number;
            /** @description Last line of either, up to 200 characters; empty for a script with secrets. */
            line: string;
            /**
             * Format: int64
             * @description Bytes of its standard error.
             */
            stderrBytes: number;
            /**
             * Format: int64
             * @description Bytes of its standard output.
             */
            stdoutBytes: number;
            /** @description Step instance. */
            stepId: string;
        };
        /** @description The session of a step attempt. */
        AttemptSession: {
            /** @description Model that the agent of this attempt names; null for other attempts, and for the default model. */
            agentHint?: string | null;
            /**
             * Format: int32
             * @description Number of the attempt, from 1.
             */
            attempt: number;
            /** @description Id of the session of the child execution that the attempt started; null without one. */
            childSessionId?: string | null;
            /** @description End of the attempt, RFC 3339; null if it has not ended. */
            endedAt?: string | null;
            /** @description Session key: `agent:A:workflow:W:run:X:node:S:attempt:N`. */
            key: string;
            /** @description Step instance, such as `fetch[3].parse`. */
            node: string;
            /**
             * Format: int32
             * @description Number of sessions above this one; null if a parent of the execution is unknown.
             */
            spawnDepth?: number | null;
            /** @description Key of the session of the execution. */
            spawnedBy: string;
            /** @description Start of the attempt, RFC 3339. */
            startedAt: string;
            /** @description `running`, `waiting`, `waiting_approval`, `completed`, `failed` or `cancelled`. */
            status: string;
            /** @description Path to the attempt with its input and output. */
            transcript: string;
        };
        /** @description A page of sessions of step attempts. */
        AttemptSessions: {
            /** @description Sessions in the order of the start of their attempts. Steps that never started have none. */
            attempts: components["schemas"]["AttemptSession"][];
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
        };
        /** @description A sign-in with a token, or with the code of an address that a command has opened. */
        Begin: {
            /** @description One-time code of `mainspring dev` or `mainspring up --open`, in place of a token. */
            code?: string | null;
            /** @description Token: `msp_…`. */
            token?: string | null;
        };
        /** @description A budget with its account in the current period. */
        BudgetBody: {
            /** @description The current day or month, as `2026-11-26` or `2026-11`. */
            current: string;
            /** @description `day` or `month`, after the id of the workflow and a dot if it is of one. */
            id: string;
            /** @description The amounts that are left. */
            left: Record<string, unknown>;
            /**
             * @description The limits that count: `{tokens, cost, modelCalls, toolCalls, timeMs}`. If both the organization and the
             *     settings file of the server have one, the stricter counts.
             */
            limits: Record<string, unknown>;
            /** @description `fail`, or `ask` if admins are asked to raise a limit that is reached. */
            onExceeded: string;
            /** @description `day` or `month`, in UTC. */
            period: string;
            /** @description The amounts by which people have raised the limits in it. */
            raised: Record<string, unknown>;
            /** @description Id of the member who set it last; null for a budget of the settings file alone. */
            setBy?: string | null;
            /** @description The source of each limit: `settings` for the settings file of the server, else `stored`. */
            sources: Record<string, unknown>;
            /** @description Time of the last change, RFC 3339; null for a budget of the settings file alone. */
            updatedAt?: string | null;
            /** @description The amounts that were used in it, and those that executions have reserved. */
            used: Record<string, unknown>;
            /**
             * Format: int32
             * @description The percentage of a limit at which watchers get the event `budget.warning`.
             */
            warnPercent: number;
            /** @description Id of the workflow; null for the whole organization. */
            workflow?: string | null;
            /** @description Name of the workflow; null for the whole organization, and for a deleted workflow. */
            workflowName?: string | null;
        };
        /** @description The budgets of an organization. */
        Budgets: {
            /** @description Budgets in the order of their ids. */
            budgets: components["schemas"]["BudgetBody"][];
        };
        /** @description The policy of an organization. */
        CallPolicy: {
            /**
             * @description All rules that apply, in the form of a settings file: `{classes, trusted, verdicts, organization, flows, raises}`.
             *     `verdicts` are those of the installation; `organization` joins those of the settings file and its own.
             */
            effective: Record<string, unknown>;
            /** @description The rules that the organization has set for itself: `allow`, `ask` or `deny` by class or by pattern of names. */
            verdicts: {
                [key: string]: string;
            };
        };
        /** @description A cancel request. */
        Cancel: {
            /** @description Also skip the steps of `finally`, as a second cancel does. */
            force?: boolean;
            /** @description Reason of the cancellation, such as `user_cancelled`. */
            reason?: string | null;
        };
        /** @description A recorded cancel request. */
        CancelRequested: {
            /** @description Time, RFC 3339. */
            at: string;
            /** @description Id of the member or component that acted. */
            by: string;
            /** @description Reason of the cancellation. */
            reason: string;
        };
        /** @description A case with its violated expectations. */
        CaseResult: {
            /** @description Violated expectations, at most 20. */
            failures: string[];
            /** @description Name of its file; `scenarios` for those of a request. */
            file: string;
            /** @description Modes in which it ran: `straight`, `crash_before_inputs`, `inputs_twice`, `inbox_again`. */
            modes: string[];
            /** @description Name of the case. */
            name: string;
            /** @description True if all expectations hold in all modes. */
            ok: boolean;
            /** @description Remarks that do not fail the case. */
            warnings: string[];
        };
        /**
         * @description A proposed change. The result of `workflow propose` is accepted as it is: its risk and its difference are replaced by
         *     those that the server computes.
         */
        Change: {
            /** @description If given, it must equal `baseWorkflowHash`. */
            baseHash?: string | null;
            /** @description Difference as the author sees it. The server computes the difference. */
            diff?: string | null;
            /** @description The proposed definition. */
            proposedWorkflow: Record<string, unknown>;
            /** @description Reasons for the change. */
            rationale?: string | null;
            /** @description Risk as the author sees it. The server computes the risk. */
            riskLevel?: string | null;
            /** @description One sentence: what changes. */
            summary?: string | null;
        };
        /** @description The change of a proposal. */
        ChangeBody: {
            /** @description The proposed definition. */
            proposedWorkflow: Record<string, unknown>;
            /** @description Reasons of the author. */
            rationale?: string | null;
            /** @description One sentence of the author. */
            summary?: string | null;
            written?: components["schemas"]["WrittenBody"] | null;
        };
        /**
         * @description Machine-readable error code.
         * @enum {string}
         */
        Code: "VALIDATION_ERROR" | "INVALID_DEFINITION" | "UNAUTHORIZED" | "FORBIDDEN" | "NOT_FOUND" | "METHOD_NOT_ALLOWED" | "REQUEST_TIMEOUT" | "CONFLICT" | "WORKFLOW_RUNTIME_DISABLED" | "WORKFLOW_DISABLED" | "TRIGGER_DISABLED" | "TRIGGER_OWNER_REMOVED" | "INVALID_RESUME_TOKEN" | "PRECONDITION_FAILED" | "PAYLOAD_TOO_LARGE" | "UNSUPPORTED_MEDIA_TYPE" | "REPOSITORY_UNRESOLVED" | "RATE_LIMITED" | "NOT_AVAILABLE" | "MODEL_FAILED" | "INTERNAL_ERROR" | "UNAVAILABLE";
        /** @description Result of an input. */
        CommandResult: {
            /** @description Execution, as in `/api/executions/{id}`. */
            executionId: string;
            /** @description Always true. */
            ok: boolean;
            /**
             * @description Status after the input; `accepted` if the execution runs on another node, which processes the input from its
             *     inbox.
             */
            status: string;
        };
        /** @description The source of the events of a trigger, as a request writes it. */
        ConfigBody: {
            /** @description Headers that a delivery must have, with their values. If absent in a change, the stored ones stay. */
            headers?: {
                [key: string]: string;
            } | null;
            /** @description `POST` (default), `PUT`, `PATCH`, or `GET` with a secret. */
            method?: string | null;
            /**
             * @description Path below `/webhooks/`: segments of letters, digits and `. _ ~ -`, up to 200 bytes. A path belongs to one
             *     trigger of the installation.
             */
            path: string;
            respond?: components["schemas"]["Respond"] | null;
            /** @description Secret of the signatures. If `secret` and `secrets` are absent in a change, the stored ones stay. */
            secret?: string | null;
            /** @description Secrets that are valid at the same time, during a rotation: the new and the old one. */
            secrets?: string[] | null;
            signature?: components["schemas"]["SignatureConfig"] | null;
            /** @enum {string} */
            type: "webhook";
            /**
             * Format: int64
             * @description With `respond: wait`, milliseconds, up to 60,000; default 10,000.
             */
            waitMs?: number | null;
        } | {
            /** @description Five fields (minute, hour, day of month, month, day of week), or a name such as `@daily`. */
            cron: string;
            /**
             * Format: int64
             * @description Milliseconds, up to an hour. All ticks of the trigger start late by the same part of it, which differs between
             *     triggers.
             */
            jitterMs?: number | null;
            missed?: components["schemas"]["Missed"] | null;
            overlap?: components["schemas"]["Overlap"] | null;
            /** @description Prompt of the target `orchestrator`, up to 16 KiB. */
            prompt?: string | null;
            /**
             * @description `workflow` (default), or `orchestrator`: each tick sends `prompt` to the endpoint that the settings of the server
             *     name for the organization.
             */
            target?: string | null;
            /** @description IANA name of the time zone; default `UTC`. */
            timezone?: string | null;
            /** @enum {string} */
            type: "schedule";
            /**
             * Format: int64
             * @description Milliseconds, up to 31 days; default a day. Older missed ticks never run.
             */
            windowMs?: number | null;
        } | {
            /** @enum {string} */
            type: "manual";
        };
        /** @description The source of the events of a trigger, without its secrets. */
        ConfigView: {
            /** @description True if deliveries must be signed. */
            hasSecret: boolean;
            /** @description Names of the headers that a delivery must have. */
            headerNames: string[];
            /** @description Accepted HTTP method. */
            method: string;
            /** @description Path below `/webhooks/`. */
            path: string;
            /** @description The response of a delivery. */
            respond: components["schemas"]["Respond"];
            /** @description Number of secrets that are valid at the same time. */
            secretCount: number;
            signature?: components["schemas"]["SignatureConfig"] | null;
            /** @enum {string} */
            type: "webhook";
            /**
             * Format: int64
             * @description Longest wait for the output in milliseconds.
             */
            waitMs: number;
        } | {
            /** @description Cron expression. */
            cron: string;
            /**
             * Format: int64
             * @description Largest delay of the ticks in milliseconds.
             */
            jitterMs: number;
            /** @description Ticks that are found more than a minute after they were due. */
            missed: components["schemas"]["Missed"];
            /** @description A tick while an execution of the trigger is active. */
            overlap: components["schemas"]["Overlap"];
            /** @description Prompt of the target `orchestrator`; null for `workflow`. */
            prompt?: string | null;
            /** @description `workflow` or `orchestrator`. */
            target: string;
            /** @description IANA name of the time zone. */
            timezone: string;
            /** @description Release of the IANA time zone data of this server. */
            timezoneData: string;
            /** @enum {string} */
            type: "schedule";
            /**
             * Format: int64
             * @description Milliseconds; older missed ticks never run.
             */
            windowMs: number;
        } | {
            /** @enum {string} */
            type: "manual";
        };
        /** @description An organization to create. */
        CreateOrganization: {
            /** @description Features by name: `workflow_runtime_v1`, which permits starts. Omitted features are off. */
            features?: {
                [key: string]: boolean;
            };
            /** @description Unique id. */
            id: string;
            /** @description Display name. */
            name?: string | null;
            /** @description Id of the first member, who gets the role `owner`. */
            owner: string;
        };
        /** @description A proposal to create. */
        CreateProposal: {
            /** @description `workflowHash` of the definition that it changes. It must be the present one. */
            baseWorkflowHash: string;
            /** @description Id of the execution that led to it. A session proposes as its own execution. */
            executionId?: string | null;
            /** @description Time at which it expires, RFC 3339, at most 365 days away; default: in 14 days. */
            expiresAt?: string | null;
            /** @description The change. */
            proposal: components["schemas"]["Change"];
        };
        /** @description A credential to create. */
        CreateToken: {
            /** @description Expiration time, such as 2026-02-07T12:00:00Z; by default the credential does not expire. */
            expiresAt?: string | null;
            /** @description Display name. */
            name: string;
            /** @description Restricts the credential to these permissions; by default it has all permissions of the member. */
            scopes?: components["schemas"]["Permission"][];
            /** @description Id of the execution, for the credential of its session. Such a credential does not represent a person. */
            sessionOf?: string | null;
            /** @description Id of the member; default: the caller. Only admins can create credentials for other members. */
            userId?: string | null;
        };
        /** @description A created credential. Only this response contains the token. */
        Created: {
            /** @description Expiration time, RFC 3339; null if the credential does not expire. */
            expiresAt?: string | null;
            /** @description Unique id. */
            id: string;
            /** @description Token for `Authorization: Bearer …`. */
            token: string;
            /** @description Id of the member. */
            userId: string;
        };
        /** @description A decision about a rollout. */
        DecideRollout: {
            /** @description The reason, recorded in the audit log. */
            reason: string;
        };
        /** @description A decision of an approval. */
        Decided: {
            /** @description Time, RFC 3339. */
            at: string;
            /** @description Id of the member who decided; null for the decision at the timeout. */
            by?: string | null;
            /** @description `approve` or `deny`. */
            decision: string;
            /** @description Reason; null if none was given or it was erased. */
            reason?: string | null;
        };
        /** @description Body of a decision at an open approval. */
        Decision: {
            /** @description True to approve, false to deny. */
            approve: boolean;
            /** @description With a denial of a form: true if the person cancels, and does not only decline. */
            cancel?: boolean;
            /** @description Content of the form that a tool server asks for, as an object from fields to values; only with an approval. */
            content?: unknown;
            /** @description Reason, recorded in the journal and the audit log. */
            reason?: string | null;
        };
        /** @description Fields of the form on the approval page. */
        DecisionForm: {
            /** @description `approve` or `deny`. */
            decision: string;
            /** @description Reason, recorded in the journal and the audit log. */
            reason?: string | null;
            /** @description Resume token of the page. It is valid only for the approval as shown. */
            resumeToken: string;
        };
        /** @description A definition to check. */
        Definition: {
            /** @description Definition as an object, or as text in YAML or JSON. Diagnostics of text have lines and columns. `GET /definition.schema.json` is its JSON Schema, and `GET /llms.txt?tag=language` explains it. */
            definition: Record<string, unknown> | string;
        };
        /** @description The execution that a delivery started. */
        Delivered: {
            /** @description Execution, as in `/api/executions/{id}`. */
            executionId: string;
            /** @description True if an earlier delivery with the same identity had started it. */
            existed: boolean;
            /** @description With `respond: wait`: the output. */
            output?: unknown;
            /**
             * @description `accepted`, or with `respond: wait` the status of the envelope: `ok`, `needs_approval`, `cancelled`, `failed`, or
             *     `running` if the execution has not ended in time.
             */
            status: string;
        };
        /** @description The run log of a trigger. */
        Deliveries: {
            /** @description The newest 100 runs, newest first. */
            deliveries: components["schemas"]["DeliveryBody"][];
        };
        /** @description A run of a trigger: a delivery, a tick or a request. */
        DeliveryBody: {
            /** @description Time, RFC 3339. */
            at: string;
            /** @description Id that the sender gave the delivery, or the UTC minute of the tick. */
            deliveryId?: string | null;
            /** @description Id of the execution that was started or found. */
            executionId?: string | null;
            /** @description Id, for `redeliver`. */
            id: string;
            /** @description An execution was started or found, or the event started none; or the outcome of a prompt. */
            outcome: components["schemas"]["RunOutcome"];
            /** @description Id of the prompt, the same as in `webhook-id`; null for others. */
            promptId?: string | null;
            /** @description Reason of a refusal or failure, or the variables without a value. */
            reason?: string | null;
            /** @description `webhook`, `schedule` or `manual`. */
            source: string;
            /**
             * Format: int32
             * @description HTTP status of the response, for a prompt that of the orchestrator; null for ticks.
             */
            status?: number | null;
        };
        /** @description The result of a delivery on request. */
        DeliveryResult: {
            /** @description True if the endpoint has answered with a status from 200 to 299. */
            delivered: boolean;
            /** @description Error code; null if it was delivered. */
            error?: string | null;
            /** @description Id of the event, the same as in `webhook-id`. */
            eventId: string;
            /**
             * Format: int32
             * @description Status of the answer; null without one.
             */
            status?: number | null;
        };
        /** @description A proposal with the subject of its review. */
        DetailedProposal: components["schemas"]["ProposalBody"] & {
            /** @description `{baseHash, proposedHash, risk, findings, findingsTotal, changes, changesTotal, diff}`. */
            report?: Record<string, unknown> | null;
            /**
             * @description Hash over the report, over the definitions of all workflows that it starts, and over the scenarios of the
             *     workflow. A review is bound to it.
             */
            reviewHash?: string | null;
            /**
             * @description Reason for which scenarios of the workflow failed with the definition when it was proposed. Such a proposal cannot
             *     be applied before they hold.
             */
            scenarioFailure?: string | null;
            /** @description Hash of the scenarios of the workflow; null if it has none. */
            scenariosHash?: string | null;
            /** @description Names of the workflows that it starts, directly and through others, with their hashes; null for a missing one. */
            workflows: {
                [key: string]: string | null;
            };
        };
        /** @description A mistake of a definition file. */
        DevDiagnostic: {
            /** @description Machine-readable code. */
            code: string;
            /** @description Suggested change; empty if the message is enough. */
            help: string;
            /** @description Line in the file, from 1; null if it is unknown. */
            line?: number | null;
            /** @description Description of the mistake. */
            message: string;
            /** @description Path into the definition. */
            path: string;
            /** @description `error` or `warning`. */
            severity: string;
        };
        /** @description A definition file. */
        DevFileBody: {
            /** @description Scenario cases that failed. */
            casesFailed: number;
            /** @description Scenario cases that passed. */
            casesPassed: number;
            /** @description Errors and warnings of the present content. A file with errors is not saved. */
            diagnostics: components["schemas"]["DevDiagnostic"][];
            /** @description Name of the file in the folder. */
            name: string;
            /** @description Id of the workflow that the file was saved as last; null if it was never saved. */
            workflowId?: string | null;
        };
        /** @description The files of a watched folder. */
        DevFileList: {
            /** @description The definition files by name; empty unless the server was started by `mainspring dev`. */
            files: components["schemas"]["DevFileBody"][];
        };
        /** @description Fields of a workflow to change. Omitted fields keep their values; null clears an optional field. */
        Draft: {
            /** @description Definition as an object, or as text in YAML or JSON. Diagnostics of text have lines and columns. `GET /definition.schema.json` is its JSON Schema, and `GET /llms.txt?tag=language` explains it. */
            data?: Record<string, unknown> | string | null;
            /** @description Purpose, as the author describes it; null to clear it. */
            description?: string | null;
            /** @description True if the workflow can be started. */
            enabled?: boolean | null;
            /** @description Display name. */
            name?: string | null;
            repository?: components["schemas"]["RepositoryContext"] | null;
            /** @description Human-readable id, unique among the member's workflows; null to clear it. */
            slug?: string | null;
            /** @description Tags for searches; null to clear them. */
            tags?: string[] | null;
            /**
             * @description Semantic version. By default a new definition increments the last part. A definition that was saved before gets
             *     its former version again; a version never belongs to two definitions.
             */
            version?: string | null;
        };
        /** @description A drain of a workflow: executions of its new definitions wait until none of an older one is unfinished. */
        DrainBody: {
            /** @description Id of the member who applied it. */
            by: string;
            /** @description Hash of the definition before. */
            fromHash: string;
            /** @description The applied proposal. */
            proposalId: string;
            /** @description Time at which the proposal was applied, RFC 3339. */
            since: string;
            /** @description Unfinished executions of older definitions, up to 10,000; null in lists and in responses to changes. */
            waitsFor?: number | null;
            /** @description True if there are more than `waitsFor` says; null if that is null. */
            waitsForMore?: boolean | null;
        };
        /** @description A key that encrypts stored secrets, or has encrypted some. */
        EncryptionKeyBody: {
            /** @description Identifies the key without revealing it. */
            id: string;
            /** @description True for the installation's key, which also authenticates journals and tokens. */
            installation: boolean;
            /** @description True if this node has it in its key file. */
            known: boolean;
            /** @description True if new values are encrypted with it. */
            primary: boolean;
            /**
             * Format: int64
             * @description Number of stored values that are encrypted with it.
             */
            values: number;
        };
        /** @description The encryption keys. */
        EncryptionKeysBody: {
            /** @description Time since which the primary key encrypts, RFC 3339; null for the installation's key from the beginning. */
            activatedAt?: string | null;
            /** @description Keys in the order of the key file, with unknown ones at the end. */
            keys: components["schemas"]["EncryptionKeyBody"][];
            /** @description Present time of this node, RFC 3339. */
            now: string;
        };
        /** @description The end of a rollout. */
        EndBody: {
            /** @description Time, RFC 3339. */
            at: string;
            /** @description True if the server decided at the thresholds. */
            automatic: boolean;
            /** @description Id of the member who decided, or in whose name the server did. */
            by: string;
            /** @description Figures of the candidate at the decision. */
            candidate: components["schemas"]["SideFigures"];
            /** @description The reason of the member, or the thresholds. */
            reason: string;
            /** @description Figures of the stable definition at the decision. */
            stable: components["schemas"]["SideFigures"];
        };
        /** @description Fields of the sign-in form. */
        EnterForm: {
            /** @description Path to redirect to, such as `/approve/…`. */
            next: string;
            /** @description Token: `msp_…`. */
            token: string;
        };
        /** @description A page of the audit log. */
        Entries: {
            /** @description Entries in ascending order. */
            entries: components["schemas"]["EntryBody"][];
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
        };
        /** @description An entry of the audit log. */
        EntryBody: {
            /** @description Action, such as `approval.decide`. */
            action: string;
            /** @description Id of the member or component that acted. */
            actor: string;
            /** @description Time, RFC 3339. */
            at: string;
            /** @description Structured details of the action. */
            detail?: Record<string, unknown> | null;
            /** @description Hash of the previous hash and of all fields of this entry: `sha256:…`. */
            hash: string;
            /**
             * Format: int64
             * @description Number of the entry, from 1 without gaps.
             */
            number: number;
            /** @description Target of the action. */
            target: string;
        };
        /** @description Values to erase, with the reason. */
        Erase: {
            /** @description Reason, recorded in the audit log. */
            reason: string;
            /** @description Ids or instance names of the steps whose values are erased. Empty for all values of the execution. */
            steps?: string[];
        };
        /** @description Result of an erasure. */
        Erased: {
            /** @description Number of values that this request erased. */
            erased: number;
            /** @description Execution, as in `/api/executions/{id}`. */
            executionId: string;
            /** @description Always true. */
            ok: boolean;
        };
        /** @description An event for a trigger. */
        EventBody: {
            /** @description Body of the event; any JSON value. */
            body?: unknown;
            /** @description Headers; an object. */
            headers?: Record<string, unknown> | null;
            /** @description Query parameters; an object. */
            query?: Record<string, unknown> | null;
        };
        /** @description An execution with all details. */
        ExecutionBody: components["schemas"]["ExecutionSummary"] & components["schemas"]["ExecutionChanges"] & components["schemas"]["PinnedAtStart"] & components["schemas"]["IncludedParts"] & {
            /** @description All open approvals, including those of child executions. Each has `id` and `decideUrl`, as in `/api/approvals`. */
            approvals: Record<string, unknown>[];
            /** @description Error: `{code, class, message, details, stepId}`; null if the execution has not ended or nothing failed. */
            error?: Record<string, unknown> | null;
            /** @description Input of the start (`@input`), any JSON value; null if there is none or it was erased. */
            input: unknown;
            /** @description Output of a completed execution, any JSON value. In all other states an object with the output variables so far. */
            outputs: unknown;
            /** @description Reason of the quarantine; null if the execution is not quarantined. */
            quarantined?: string | null;
            /** @description First open approval; null if none is open. */
            requiresApproval?: Record<string, unknown> | null;
            /** @description Resume token of the first open approval, for callers who may decide; null otherwise. */
            resumeToken?: string | null;
            /** @description Metadata of the trigger; null for child executions. */
            triggerMetadata?: Record<string, unknown> | null;
            /**
             * @description Usage of its agents and its ended children: `{used, reserved, limits, left, raised, steps}`, each with `tokens`,
             *     `cost`, `modelCalls`, `toolCalls` and `timeMs`. `limits` and `left` only if there is a budget. `steps` has the used
             *     amounts of each step by its id. Null for an execution without agents.
             */
            usage?: Record<string, unknown> | null;
            /**
             * @description Variables of the start (`@vars`), an object; null if they were erased. Another JSON value only if a parent
             *     passed an invalid one, which failed the execution.
             */
            variables: unknown;
            /**
             * @description Reason why a pending execution has not started: the concurrency limit of the `user`, the `organization` or the
             *     `workflow`, `draining` while older executions of its workflow have not ended, or `admission` before the limits were
             *     checked. Null after the start.
             */
            waitingFor?: string | null;
        };
        /** @description Requests of people that changed an execution. */
        ExecutionChanges: {
            cancelRequested?: components["schemas"]["CancelRequested"] | null;
            /** @description Migrations to other definitions, the oldest first. `workflowHash` and `workflowVersion` are those of the last. */
            migrations: components["schemas"]["Migrated"][];
        };
        /** @description An execution in a list, with its error. */
        ExecutionListed: components["schemas"]["ExecutionSummary"] & {
            /**
             * @description Error: `{code, class, message, details}`; null if the execution has not ended or nothing failed. Class and
             *     message are null if they are not found at the end of the journal. The step is only in the response for a single
             *     execution.
             */
            error?: Record<string, unknown> | null;
        };
        /** @description The outcome of an attempt as the execution received it: the signed envelope, and the check of its signature. */
        ExecutionReceipt: {
            /** @description Time of the turn, RFC 3339. */
            at: string;
            /**
             * Format: int32
             * @description Number of the attempt, from 1; 0 if the receipt is broken and names none.
             */
            attempt: number;
            /** @description Kind of the call, such as `bash`. */
            effect: string;
            /** @description Reason why the signature is broken; null otherwise. */
            error?: string | null;
            /** @description Key of the execution, as in folders of evidence. */
            executionKey: string;
            executor: components["schemas"]["Executor"] | null;
            frame: components["schemas"]["ReceiptFrame"] | null;
            /** @description Idempotency key of the step in hexadecimal digits; null for a late receipt. */
            intent?: string | null;
            /** @description Hash of the payload in hexadecimal digits. */
            payloadSha256: string;
            /** @description Hash of the stored plan: `sha256:…`. */
            planHash: string;
            /** @description `verified`; `unsigned` for a receipt from before receipts were signed; `broken`. */
            signature: string;
            /** @description `done`, `failed`, `stopped`, `interrupted` or `cancelled`; `undecodable` for a late receipt that is broken. */
            status: string;
            /** @description Step instance, such as `fetch[3].parse`; empty if the receipt is broken and names none. */
            step: string;
            /** @description `executor` or `inbox`. */
            via: string;
            /** @description Hash of the normalized definition: `sha256:…`. */
            workflowHash: string;
        };
        /** @description A session as the API shows it: where the effects of one execution happen. */
        ExecutionSession: {
            /** @description Time of acceptance, RFC 3339. */
            createdAt: string;
            /** @description End of the execution, RFC 3339; null if it has not ended. */
            endedAt?: string | null;
            /** @description As in `GET /api/executions/{id}`. */
            executionId: string;
            /** @description As in `GET /api/executions/{id}`: `pending`, `running`, `waiting_approval`, `completed`, … */
            executionStatus: string;
            /** @description Unique id; `sessionId` of the execution. */
            id: string;
            /**
             * @description Session key: `agent:A:workflow:W:run:X` with the member, the workflow and the execution. A part that such a key
             *     cannot hold is replaced.
             */
            key: string;
            /** @description `workflow`. */
            purpose: string;
            /** @description Always false: no link gives access to it. */
            shareable: boolean;
            /**
             * Format: int32
             * @description Number of sessions above this one: 0 for an execution without a parent. Null if a parent is unknown.
             */
            spawnDepth?: number | null;
            /** @description Key of the session whose step started this execution; null without one. */
            spawnedBy?: string | null;
            /** @description `hibernated` before the start and while only approvals are open, `running`, or `terminated` with the execution. */
            status: string;
            /** @description Paths to its records. */
            transcript: components["schemas"]["Transcript"];
            /** @description Id of the member on whose behalf it acts. */
            userId?: string | null;
            /** @description Id of the workflow; null for child executions of older releases. */
            workflowId?: string | null;
        };
        /** @description A page of sessions. */
        ExecutionSessions: {
            /** @description `cursor` of the next page; null for the last page. A page with a pattern may be short and have a cursor. */
            nextCursor?: string | null;
            /** @description Sessions, newest first. */
            sessions: components["schemas"]["ExecutionSession"][];
        };
        /** @description An execution without its values. */
        ExecutionSummary: components["schemas"]["ExecutionWorkflow"] & components["schemas"]["ExecutionTrigger"] & {
            /**
             * Format: int32
             * @description Number of dispatches, from 1.
             */
            attemptCount: number;
            /** @description End of the execution, RFC 3339; null if it has not ended. */
            completedAt?: string | null;
            /** @description Error code, or the reason of the end. */
            errorCode?: string | null;
            /** @description Unique id. */
            id: string;
            /** @description `with_failures` for a completed execution with tolerated failures; null otherwise. */
            outcome?: string | null;
            /** @description Id of the parent execution; null without one. */
            parentExecutionId?: string | null;
            /** @description Id of the session of the execution, see `GET /api/sessions/{id}`. */
            sessionId: string;
            /** @description Time of acceptance, RFC 3339. */
            startedAt: string;
            /** @description `pending`, `running`, `waiting_approval`, `cancel_requested`, `completed`, `failed` or `cancelled`. */
            status: string;
            /** @description Id of the owner. */
            userId?: string | null;
        };
        /** @description The cause of an execution. */
        ExecutionTrigger: {
            /** @description Idempotency key, unique per workflow. */
            idempotencyKey?: string | null;
            /** @description Kind of the initiator. */
            initiatorType: string;
            /** @description Id of the initiator. */
            initiatorUserId?: string | null;
            /** @description Id of the trigger; null without one. */
            triggerId?: string | null;
            /** @description Display name of the trigger. Null in this release. */
            triggerName?: string | null;
            /** @description `manual`, `webhook`, `schedule`, `subworkflow`, or `subworkflow_detached` if the parent does not wait. */
            triggerType: string;
        };
        /** @description The workflow of an execution as of the start, or of its last migration. */
        ExecutionWorkflow: {
            /** @description Hash of the definition: `sha256:…`. */
            workflowHash: string;
            /** @description Id of the workflow; null for child executions of older releases. */
            workflowId?: string | null;
            /**
             * @description Display name of the workflow when the execution was started, else the name in the definition; null if neither
             *     exists.
             */
            workflowName?: string | null;
            /** @description Semantic version of the workflow. */
            workflowVersion?: string | null;
        };
        /** @description A page of executions. */
        Executions: {
            /** @description Items, newest first. */
            executions: components["schemas"]["ExecutionListed"][];
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
        };
        /** @description A node that signs receipts. */
        Executor: {
            /** @description Id of its executor key: `sha256:…`. */
            key: string;
            /** @description Host and process of the node. */
            name: string;
            /** @description Release of the node. */
            version: string;
        };
        /** @description Dispatch of an execution. */
        ExecutorState: {
            /**
             * Format: int32
             * @description Number of dispatches, from 1.
             */
            dispatchCount: number;
            /** @description Time of acceptance, RFC 3339. */
            firstEnqueuedAt: string;
            /** @description Error code, or the reason of the end. */
            lastError?: string | null;
            /** @description Id of the session of the execution. */
            sessionId: string;
            /** @description `manual`, `webhook`, `schedule`, `subworkflow` or `subworkflow_detached`. */
            triggerType: string;
        };
        /** @description An event that was not delivered in the time of its retries. */
        FailedEventBody: {
            /**
             * Format: int32
             * @description Number of attempts.
             */
            attempts: number;
            /** @description Error code of the last attempt, such as `http_status:503`. */
            error: string;
            /** @description Id of the event, the same as in `webhook-id`. */
            eventId: string;
            /** @description As `workflow.step.failed`. */
            eventType: string;
            /** @description Execution, as in `/api/executions/{id}`. */
            executionId: string;
            /** @description Time of the last attempt, RFC 3339. */
            failedAt: string;
            /** @description Time of the first attempt, RFC 3339. */
            failingSince: string;
            /** @description Id of the failed delivery, for `redeliver`. */
            id: string;
        };
        /** @description A page of failed deliveries. */
        FailedEvents: {
            /** @description Items, the oldest failure first. */
            failed: components["schemas"]["FailedEventBody"][];
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
        };
        /** @description A frame of a journal. */
        FrameBody: {
            /** @description Time of the frame, RFC 3339. */
            at: string;
            /** @description Hash of the previous frame: `sha256:…`. */
            before: string;
            /** @description Stored frame in deterministic CBOR, as hexadecimal digits. The hash covers these bytes. */
            frame: string;
            /** @description Hash of the frame: `sha256:…`. */
            hash: string;
            /**
             * Format: int64
             * @description Position in the journal, from 0.
             */
            sequence: number;
        };
        /** @description Health of the server. */
        Health: {
            /** @description Partitions that this node owns. */
            partitions: number;
            /** @description Release of the server. */
            release: string;
            /** @description `ok`. */
            status: string;
        };
        /** @description A page of versions. */
        History: {
            /** @description Items, newest first. */
            history: components["schemas"]["VersionBody"][];
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
        };
        /** @description The optional parts of an execution; each is missing unless the request includes it. */
        IncludedParts: {
            /** @description With `include=progress`: progress of running attempts, as far as this server knows it. */
            progress?: components["schemas"]["ProgressBody"];
            /** @description With `include=runtimeState`: runtime details. */
            runtimeState?: components["schemas"]["RuntimeState"];
            /** @description With `include=steps`: the first attempts, up to 8 MiB. */
            steps?: Record<string, unknown>[];
            /** @description With `include=steps`: `cursor` of `GET /api/executions/{id}/steps` for the remaining attempts. */
            stepsCursor?: string;
            /** @description With `include=workflowSnapshot`: the definition of the execution as saved; null if the history lacks it. */
            workflowSnapshot?: Record<string, unknown> | null;
        };
        /** @description Frames of an execution's journal. */
        Journal: {
            /** @description Execution, as in `/api/executions/{id}`. */
            executionId: string;
            /** @description Frames in ascending order. */
            frames: components["schemas"]["FrameBody"][];
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
        };
        /** @description A failed attempt. */
        LastFailureBody: {
            /** @description Time, RFC 3339. */
            at: string;
            /**
             * @description Error code, such as `http_status:503`, or `subscription_secret_unreadable` if the secret was encrypted with another
             *     key: rotate it.
             */
            error: string;
            /** @description The same as in `webhook-id`. */
            eventId: string;
        };
        /** @description Limits of concurrent executions. Further executions wait in a queue. */
        Limits: {
            /**
             * Format: int32
             * @description Executions of the organization.
             */
            perOrganization: number;
            /**
             * Format: int32
             * @description Executions of one member.
             */
            perUser: number;
            /**
             * Format: int32
             * @description Executions of each workflow of the organization; null for no such limit.
             */
            perWorkflow?: number | null;
        };
        /** @description Limits to change. Omitted limits keep their values. */
        LimitsUpdate: {
            /**
             * Format: int32
             * @description Executions of the organization.
             */
            perOrganization?: number | null;
            /**
             * Format: int32
             * @description Executions of one member.
             */
            perUser?: number | null;
            /**
             * Format: int32
             * @description Executions of each workflow of the organization; null for no such limit.
             */
            perWorkflow?: number | null;
        };
        /** @description Result of a variable mapping. */
        Mapped: {
            /** @description Variables whose path has no value. */
            missing: components["schemas"]["MissingBody"][];
            /** @description Variables of the execution. */
            variables: Record<string, unknown>;
        };
        /** @description Identity of the caller. */
        Me: {
            /** @description True if the credential represents a person, who can decide approvals. */
            isPerson: boolean;
            /** @description Organization that the credential belongs to. */
            organizationId: string;
            /** @description Permissions of the credential. */
            permissions: string[];
            /** @description Role in the organization. */
            role: components["schemas"]["Role"];
            /** @description Id of the member. */
            userId: string;
        };
        /** @description A member of the organization. */
        MemberBody: {
            /** @description Time of creation, RFC 3339. */
            createdAt: string;
            /** @description Id in journals and in the audit log. */
            id: string;
            /** @description Display name. */
            name?: string | null;
            /** @description True for operators of the installation. */
            operator: boolean;
            /** @description Role in the organization. */
            role: components["schemas"]["Role"];
        };
        /** @description A page of members. */
        Members: {
            /** @description Members in the order of their ids. */
            members: components["schemas"]["MemberBody"][];
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
        };
        /** @description A message to an agent. */
        Message: {
            /** @description Text of the message, up to 64 KiB. */
            content: string;
            /** @description Name of the conversation; may be absent if the workflow has only one. */
            conversation?: string | null;
            /** @description Unique id of the message. A repeated id has no second effect. */
            id: string;
            /** @description Cancel the open model call, so that the message is read at once. The call counts as paid. */
            interrupt?: boolean;
        };
        /** @description A migration of an execution to another definition. */
        Migrated: {
            /** @description Time, RFC 3339. */
            at: string;
            /** @description Hash of the definition before. */
            fromWorkflowHash: string;
            /** @description Hash of the definition since. */
            toWorkflowHash: string;
        };
        /** @description A migration of the unfinished executions of a workflow to the definition of a proposal. */
        MigrationBody: {
            /** @description Id of the member who applied the proposal; null in a preview. */
            by?: string | null;
            /** @description Reason why executions are left, such as another definition since; null if none are. */
            endReason?: string | null;
            /** @description Time of the end, RFC 3339. */
            endedAt?: string | null;
            /** @description A preview has all unfinished executions of the page, the newest first. Later, these are the first 200 that stayed. */
            executions: components["schemas"]["MigrationExecution"][];
            /**
             * Format: int64
             * @description Executions that have continued with it; 0 in a preview.
             */
            migrated: number;
            /** @description `cursor` of the next page of a preview; null for the last page. */
            nextCursor?: string | null;
            /** @description Time of the application, RFC 3339; null in a preview. */
            since?: string | null;
            /** @description Progress. */
            status: components["schemas"]["MigrationStatus"];
            /**
             * Format: int64
             * @description Executions that stayed; 0 in a preview.
             */
            stayed: number;
            /** @description Hash of the definition with which executions continue. */
            workflowHash: string;
        };
        /** @description An execution in a migration. */
        MigrationExecution: {
            /** @description Execution, as in `/api/executions/{id}`. */
            executionId: string;
            /** @description True if it would continue with the new definition. */
            migrates: boolean;
            /** @description Reasons for which it stays with its definition. After the application at most four are kept. */
            reasons: components["schemas"]["StayReason"][];
        };
        /**
         * @description Progress of a migration.
         * @enum {string}
         */
        MigrationStatus: "preview" | "running" | "ended";
        /**
         * @description The treatment of ticks that are found more than a minute after they were due.
         * @enum {string}
         */
        Missed: "skip" | "once" | "all";
        /** @description A variable whose path has no value. */
        MissingBody: {
            /** @description Path, as configured. */
            path: string;
            /** @description The place at which the path ends in the event. */
            reason: string;
            /** @description Name of the variable. */
            variable: string;
        };
        /** @description A configured model. */
        ModelBody: {
            /** @description The origin of its address; null for a scripted model. */
            address?: string | null;
            /** @description True if steps without `model` use it. */
            default: boolean;
            /** @description True if it has a key. */
            hasKey: boolean;
            /** @description The model as the provider names it. */
            model: string;
            /** @description Name by which steps refer to it. */
            name: string;
            /** @description The format of its requests: `anthropic`, `openai` and others. */
            provider: string;
        };
        /** @description The result of a check of a model. */
        ModelCheck: {
            /**
             * Format: int64
             * @description Duration of the check in milliseconds.
             */
            durationMs: number;
            /** @description The failure, `{class, code, message}`; null if there is none. */
            error?: Record<string, unknown> | null;
            /** @description True if the model has answered. */
            ok: boolean;
            /** @description The text of its answer; null without one. */
            text?: string | null;
            /** @description Tokens and cost of the answer; null without one. */
            usage?: Record<string, unknown> | null;
        };
        /** @description The models that the organization may use. */
        Models: {
            /** @description The mistakes in their configuration, because of which no model can be asked; null without any. */
            error?: string | null;
            /** @description Models in the order of their names. */
            models: components["schemas"]["ModelBody"][];
        };
        /** @description Fields of the request that creates a subscription. */
        NewSubscription: {
            /** @description True (default) if events are sent. */
            enabled?: boolean | null;
            /** @description Display name. */
            name: string;
            /** @description The secret of signatures: `whsec_` and 24 to 64 bytes in base64. By default the server generates one. */
            secret?: string | null;
            /** @description Types of events: `workflow.execution.finished`, or prefixes such as `workflow.step.*`. */
            types: string[];
            /** @description Address of the endpoint: `https://` or `http://`. Private addresses are refused unless the operator allows them. */
            url: string;
            /** @description Ids or slugs of workflows; null (default) for all executions of the organization. */
            workflows?: string[] | null;
        };
        /** @description Fields of the request that creates a trigger. */
        NewTrigger: {
            /** @description The source of its events. */
            config: components["schemas"]["ConfigBody"];
            /** @description True (default) if events and ticks start executions. */
            enabled?: boolean | null;
            /** @description Display name. */
            name: string;
            repository?: components["schemas"]["RepositoryContext"] | null;
            /** @description Paths into the event by the names of variables: `$.pr.number`, or JSONPath (RFC 9535). */
            variableMapping?: {
                [key: string]: string;
            } | null;
            /**
             * @description Id or slug of the workflow. Only its owner and admins may create triggers of it. A schedule with the target
             *     `orchestrator` has none.
             */
            workflowId?: string | null;
        };
        /** @description A request without fields. */
        NoFields: Record<string, unknown>;
        /** @description A request without fields. */
        Nothing: Record<string, unknown>;
        /** @description An organization. */
        OrganizationBody: {
            /** @description Time of creation, RFC 3339. */
            createdAt: string;
            /** @description Features by name. */
            features: {
                [key: string]: boolean;
            };
            /** @description Unique id. */
            id: string;
            /** @description Limits of concurrent executions. */
            limits: components["schemas"]["Limits"];
            /** @description Display name. */
            name: string;
        };
        /** @description Settings of the organization to change. */
        OrganizationPart: {
            /** @description The settings when the client compared them. */
            compared: components["schemas"]["OrganizationSettings"];
            /** @description Features by name. Omitted features keep their values. */
            features?: {
                [key: string]: boolean;
            } | null;
            limits?: components["schemas"]["LimitsUpdate"] | null;
            /** @description The rules of the organization for calls of its workflows, all of them. Omitted, they stay. */
            verdicts?: {
                [key: string]: string;
            } | null;
        };
        /** @description Settings of an organization, as `GET /api/organization` and `GET /api/policy` show them. */
        OrganizationSettings: {
            features: {
                [key: string]: boolean;
            };
            limits: components["schemas"]["Limits"];
            /** @description Required if the change has verdicts. */
            verdicts?: {
                [key: string]: string;
            } | null;
        };
        /**
         * @description The treatment of a tick while an execution of the trigger is active.
         * @enum {string}
         */
        Overlap: "allow" | "queue" | "skip" | "cancel_previous";
        /** @description Reason of a pause. */
        PausedBody: {
            /** @description Time, RFC 3339. */
            at: string;
            /** @description `failing`, `gone` or `failed_deliveries_full`. */
            code: string;
            /** @description Reason and remedy. */
            message: string;
        };
        /**
         * @description A permission that a route requires.
         * @enum {string}
         */
        Permission: "workflows:read" | "workflows:write" | "proposals:write" | "executions:read" | "executions:start" | "executions:control" | "scripts:run" | "executions:repair" | "executions:erase" | "executions:report" | "approvals:decide" | "members:read" | "members:write" | "tokens:own" | "secrets:read" | "secrets:write" | "audit:read" | "organization:read" | "organization:write" | "installation:write";
        /** @description The choices of the start that hold for the whole execution. */
        PinnedAtStart: {
            /** @description Commit of its repository, as the ref was at the start; null without one. */
            commitSha?: string | null;
            /** @description Full name of the ref of its repository, such as `refs/heads/main`; null without one. */
            ref?: string | null;
            /**
             * @description The rollout that chose its definition: `{id, version, percent, bucket}`, `version` being `candidate` or `stable`. The
             *     bucket is a hash of the key of the start, 0 to 9999; the candidate has those below the percentage. Null if the
             *     workflow had no rollout.
             */
            rollout?: Record<string, unknown> | null;
            /** @description Name of its repository, such as `acme/app`; null without one. */
            sourceRepoFullName?: string | null;
        };
        /** @description Bounds of an execution. Bounds in the definition's `constraints` cannot be exceeded. */
        PolicyBody: {
            /**
             * Format: int64
             * @description Maximum bytes of a step's output in binary form.
             */
            maxOutputBytes?: number | null;
            /**
             * Format: int64
             * @description Maximum number of concurrent branches.
             */
            maxParallel?: number | null;
            /**
             * Format: int64
             * @description Maximum number of visited steps.
             */
            maxSteps?: number | null;
            /**
             * Format: int64
             * @description Timeout of the execution in milliseconds. The clock stops while only approvals are open.
             */
            timeoutMs?: number | null;
        };
        /** @description Bounds of an execution, including defaults. */
        PolicyState: {
            /**
             * Format: int32
             * @description Maximum bytes of a step's output; null for the limit of the language.
             */
            maxOutputBytes?: number | null;
            /**
             * Format: int32
             * @description Maximum number of concurrent branches.
             */
            maxParallel: number;
            /**
             * Format: int32
             * @description Maximum number of visited steps.
             */
            maxSteps: number;
            /**
             * Format: int64
             * @description Timeout in milliseconds; null for none.
             */
            timeoutMs?: number | null;
        };
        /** @description An error response. */
        ProblemBody: {
            /** @description Machine-readable code. */
            code: components["schemas"]["Code"];
            /** @description Structured details of the error; null if there are none. */
            details?: Record<string, unknown> | null;
            /** @description Message: what happened, and what to do. */
            error: string;
        };
        /** @description Progress of an execution on the server that is asked. It is not stored, and other servers may know more. */
        ProgressBody: {
            /** @description Scripts that run in a sandbox. */
            attempts: components["schemas"]["AttemptProgressBody"][];
            /** @description Last text that the session of the execution reported; null if there is none. */
            message?: string | null;
            /** @description Time of the text, RFC 3339; null if there is none. */
            reportedAt?: string | null;
        };
        /** @description A failed attempt to deliver a prompt. */
        PromptFailureBody: {
            /** @description Time, RFC 3339. */
            at: string;
            /**
             * Format: int32
             * @description Number of failed attempts of this prompt.
             */
            attempts: number;
            /** @description Error code, such as `http_status:503`, or the reason why no request was sent. */
            error: string;
            /** @description Time of the next attempt, RFC 3339; null if it is not sent any more. */
            nextAttemptAt?: string | null;
            /** @description Id of the prompt, the same as in `webhook-id`. */
            promptId: string;
        };
        /** @description Prompts of a trigger that wait for their delivery. */
        PromptsBody: {
            lastFailure?: components["schemas"]["PromptFailureBody"] | null;
            /**
             * Format: int32
             * @description Number of prompts that are not delivered yet.
             */
            waiting: number;
        };
        /** @description A proposal. */
        ProposalBody: components["schemas"]["Times"] & {
            applied?: components["schemas"]["AppliedBody"] | null;
            /** @description Hash of the definition that it changes. */
            baseWorkflowHash: string;
            /** @description Id of the execution that led to it. */
            executionId?: string | null;
            /** @description Reason of a failed application. */
            failure?: string | null;
            /** @description Id, unique in the workflow. Ids sort by time. */
            id: string;
            /** @description The change. */
            proposal: components["schemas"]["ChangeBody"];
            /** @description Id of the member who proposed it, or for whom a session did. */
            proposedBy: string;
            /** @description Id of the session that proposed it. */
            proposedBySessionId?: string | null;
            /** @description Hash of the proposed definition. */
            proposedWorkflowHash: string;
            /** @description Notes of the last review. */
            reviewNotes?: string | null;
            /** @description Reviews, the oldest first. */
            reviews: components["schemas"]["ReviewBody"][];
            /** @description Hash of the report of the last shadow run. */
            shadowHash?: string | null;
            /** @description Status at the time of the response. */
            status: components["schemas"]["ProposalStatus"];
            /** @description Workflow, as in `/api/workflows/{id}`. */
            workflowId: string;
        };
        /**
         * @description Status of a proposal (second specification, `workflow_mutation_proposals`; the last two are additions).
         * @enum {string}
         */
        ProposalStatus: "pending" | "approved" | "rejected" | "applied" | "failed" | "expired" | "superseded";
        /** @description A page of proposals. */
        Proposals: {
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
            /** @description Items, newest first. */
            proposals: components["schemas"]["ProposalBody"][];
        };
        /** @description Desired state of a member. Omitted fields keep their values. */
        Put: {
            /**
             * @description True to forget the identity at the sign-in provider, for example after a change of provider. The next sign-in
             *     with the member's name then binds a new identity. Credentials stay valid.
             */
            forgetIdentity?: boolean;
            /** @description Display name. */
            name?: string | null;
            /**
             * @description True to make the member an operator of the installation. Requires the role `owner`; only operators can change
             *     it.
             */
            operator?: boolean | null;
            role?: components["schemas"]["Role"] | null;
        };
        /** @description A page of quarantined executions. */
        Quarantine: {
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
            /** @description Items in the order of their keys. */
            quarantined: components["schemas"]["Quarantined"][];
        };
        /** @description A quarantined execution. */
        Quarantined: {
            /** @description Execution, as in `/api/executions/{id}`. */
            executionId: string;
            /** @description Defect of the journal. */
            reason: string;
        };
        /** @description Sessions to reap. */
        Reap: {
            /** @description `nextCursor` of the previous response. */
            cursor?: string | null;
            /** @description Only list the sessions; default false. */
            dryRun?: boolean;
            /** @description Only sessions that ended before this time, such as 2026-02-07T12:00:00Z; by default all that have ended. */
            endedBefore?: string | null;
            /** @description Pattern of session keys, such as `agent:*:workflow:nightly-*:run:*`. */
            key: string;
            /** @description Maximum number of sessions, 1 to 200; default 50. */
            limit?: number | null;
        };
        /** @description The credentials and the workspace that a session of an ended execution had left. */
        ReapedSession: {
            /** @description As in `GET /api/executions/{id}`. */
            executionId: string;
            /** @description Id of the session. */
            id: string;
            /** @description Session key. */
            key: string;
            /** @description Number of its credentials that were revoked, or would be. */
            tokensRevoked: number;
            /** @description True if its workspace on this server was removed, or would be. Child executions use the workspace of their parent. */
            workspaceRemoved: boolean;
        };
        /** @description The answer to a request to reap. */
        ReapedSessions: {
            /** @description True if nothing was changed because `dryRun` was set. */
            dryRun: boolean;
            /** @description `cursor` of the next request; null after the last session. A response may be short and have a cursor. */
            nextCursor?: string | null;
            /** @description Sessions of ended executions that match, newest first. */
            sessions: components["schemas"]["ReapedSession"][];
        };
        /** @description Reason of an operation. */
        Reason: {
            /** @description Reason, recorded in the audit log. */
            reason: string;
        };
        /** @description A frame of a journal. */
        ReceiptFrame: {
            /**
             * Format: int64
             * @description Position in the journal, from 0.
             */
            sequence: number;
            /** @description SHA-256 of the frame in hexadecimal digits. */
            sha256: string;
        };
        /** @description Receipts of an execution. */
        Receipts: {
            /** @description Execution, as in `/api/executions/{id}`. */
            executionId: string;
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
            /** @description Receipts in the order of the journal, then the late ones. */
            receipts: components["schemas"]["ExecutionReceipt"][];
        };
        /** @description A repeated delivery. */
        Redelivered: {
            /** @description Execution, as in `/api/executions/{id}`; null for a prompt. */
            executionId?: string | null;
            /** @description Id of the accepted prompt; null for an execution. */
            promptId?: string | null;
        };
        /** @description The refusal of an automatic decision. */
        RefusalBody: {
            /** @description Time, RFC 3339. */
            at: string;
            /** @description The reason, a sentence. */
            message: string;
        };
        /** @description Result of an operation on a quarantined execution. */
        Repaired: {
            /** @description Execution, as in `/api/executions/{id}`. */
            executionId: string;
            /** @description Always true. */
            ok: boolean;
            /** @description `released`, `cancelled` (the parent has continued without it) or `ended`. */
            status: string;
        };
        /** @description Report of a session about its execution. */
        Report: {
            /** @description Error of a failed execution; any JSON value. */
            error?: unknown;
            /** @description Text for people who watch the execution, up to 1,024 bytes; only with the status `running`. */
            message?: string | null;
            /** @description Outputs of an ended execution; any JSON value. */
            outputs?: unknown;
            /** @description Status that the session reports. */
            status: string;
            /** @description Steps of an ended execution; any JSON value. */
            steps?: unknown;
        };
        /** @description The repository that a workflow or a trigger names. Its commit is resolved and pinned when an execution starts. */
        RepositoryContext: {
            credential?: components["schemas"]["RepositoryCredential"] | null;
            /** @description Instead of `url`: name at the first permitted host, such as `acme/app`. */
            fullName?: string | null;
            /** @description Branch, tag, full ref such as `refs/heads/main`, or commit; default: the default branch. */
            ref?: string | null;
            /** @description Triggers only, instead of `ref`: the path of the ref or commit in the event, such as `$.pull_request.head.sha`. */
            refFrom?: string | null;
            /** @description HTTPS address at a host that the operator permits: `https://github.com/acme/app.git`. */
            url?: string | null;
        };
        /** @description The secret with which a repository is read. */
        RepositoryCredential: {
            /** @description Name of the secret, whose value is a token or a password. */
            secret: string;
            /** @description User of the basic authentication; default `x-access-token`. */
            user?: string | null;
        };
        /** @description The repository that a manual start names. It completes what trigger and workflow leave open, and has no credential. */
        RequestedRepository: {
            /** @description Instead of `url`: name at the first permitted host, such as `acme/app`. */
            fullName?: string | null;
            /** @description Branch, tag, full ref or commit, if neither trigger nor workflow names one. */
            ref?: string | null;
            /** @description HTTPS address at a host that the operator permits, if neither trigger nor workflow names a repository. */
            url?: string | null;
        };
        /**
         * @description The response of a delivery that starts an execution.
         * @enum {string}
         */
        Respond: "accepted" | "wait";
        /** @description A return of a workflow to a version of its history. */
        ReturnBody: {
            /** @description Time, RFC 3339. */
            createdAt: string;
            /** @description Id of the member who made the change. */
            createdBy: string;
            /** @description Hash of the definition before: `sha256:…`. */
            fromHash: string;
            /** @description The kind of change. */
            source: components["schemas"]["Source"];
            /** @description Id of the applied proposal. */
            sourceProposalId?: string | null;
        };
        /** @description A review. */
        ReviewBody: {
            /** @description True for an approval. */
            approve: boolean;
            /** @description Time, RFC 3339. */
            at: string;
            /** @description Id of the reviewer. */
            by: string;
            /** @description True if something that was reviewed has changed since. */
            isVoid: boolean;
            /** @description Notes of the reviewer. */
            notes?: string | null;
            /** @description Hash over all that was reviewed. */
            reviewHash: string;
        };
        /** @description A review of a proposal. */
        ReviewRequest: {
            /** @description True to approve, false to reject. */
            approve: boolean;
            /** @description Notes for the author, recorded in the audit log. */
            notes?: string | null;
            /** @description `reviewHash` that the reviewer has seen. With it, the review fails if something has changed since. */
            reviewHash?: string | null;
        };
        /**
         * @description Role of a member in an organization.
         * @enum {string}
         */
        Role: "owner" | "admin" | "member" | "viewer" | "agent";
        /** @description A version to return to. */
        RollbackRequest: {
            /** @description `workflowHash` of an entry of the history. */
            workflowHash: string;
        };
        /** @description A workflow after a rollback. */
        RolledBack: components["schemas"]["SavedBody"] & {
            /** @description True if the workflow had this definition already. Nothing has changed then. */
            alreadyAtVersion: boolean;
        };
        /** @description A rollout. */
        RolloutBody: components["schemas"]["RolloutPlan"] & {
            /** @description Id of the member who applied the proposal. */
            by: string;
            /** @description The definition that is tried. */
            candidate: components["schemas"]["RolloutSide"];
            ended?: components["schemas"]["EndBody"] | null;
            /** @description Id, unique in the workflow. Ids sort by time. */
            id: string;
            lastRefusal?: components["schemas"]["RefusalBody"] | null;
            /** @description The applied proposal. */
            proposalId: string;
            /** @description Time of the application, RFC 3339. */
            since: string;
            /** @description The definition that the other starts take. */
            stable: components["schemas"]["RolloutSide"];
            /** @description `running` until the decision. */
            status: components["schemas"]["RolloutStatus"];
            verdict?: components["schemas"]["VerdictBody"] | null;
            /** @description Treatment of executions that run at the promotion: `pin` or `drain`. */
            whileRunning: string;
            /** @description Workflow, as in `/api/workflows/{id}`. */
            workflowId: string;
        };
        /** @description The share of a rollout, and the conditions of decisions. */
        RolloutPlan: {
            compare?: components["schemas"]["Thresholds"] | null;
            /**
             * Format: int32
             * @description Number of root executions that must have an execution that completed or failed before something is decided or
             *     compared, 1 to 5,000; default 20.
             */
            minimum?: number;
            /**
             * Format: int32
             * @description Percentage of the new starts that take the candidate, 1 to 99.
             */
            percent: number;
            /** @description True to promote the candidate when all thresholds are kept; default false. */
            promote?: boolean;
        };
        /** @description A definition of a rollout with its executions. */
        RolloutSide: {
            figures?: components["schemas"]["SideFigures"] | null;
            /** @description Its semantic version. */
            version: string;
            /** @description Hash of the definition. */
            workflowHash: string;
        };
        /**
         * @description The state of a rollout, in the order of time.
         * @enum {string}
         */
        RolloutStatus: "running" | "promoted" | "aborted";
        /** @description A page of rollouts. */
        Rollouts: {
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
            /** @description Items, newest first. */
            rollouts: components["schemas"]["RolloutBody"][];
        };
        /** @description A step of a rotation. */
        Rotate: {
            /** @description Most rows to encrypt again, 1 to 1,000; default 1,000. */
            rows?: number | null;
        };
        /** @description The result of a step. */
        Rotated: {
            /** @description True if no row is left. Otherwise, repeat the request. */
            done: boolean;
            /** @description Id of the primary key. */
            primary: string;
            /** @description Number of rows that this step has encrypted again. */
            rows: number;
            /** @description Number of rows that this node cannot decrypt. They stay as they are. */
            unreadable: number;
        };
        /** @description A workflow to start, with its arguments. */
        Run: {
            /** @description Idempotency key of the request. A second request of the member with the same key returns the first execution. */
            clientRequestId: string;
            /** @description `@input`: any JSON value that is valid against the workflow's `inputSchema`, if there is one. */
            input?: unknown;
            /** @description Custom metadata of the trigger; an object. */
            metadata?: Record<string, unknown> | null;
            repository?: components["schemas"]["RequestedRepository"] | null;
            runtime?: components["schemas"]["Runtime"] | null;
            /** @description `@vars`: an object. */
            variables?: Record<string, unknown> | null;
            /** @description Id or slug of the workflow. */
            workflowId: string;
        };
        /** @description A run on request. */
        RunBody: {
            /**
             * @description Idempotency key of the request. A second request of the member with the same key returns the first execution. By
             *     default every request starts an execution.
             */
            clientRequestId?: string | null;
            event?: components["schemas"]["EventBody"] | null;
            repository?: components["schemas"]["RequestedRepository"] | null;
            /** @description Variables, which take precedence over mapped ones; an object. */
            variables?: Record<string, unknown> | null;
        };
        /**
         * @description The outcome of an event.
         * @enum {string}
         */
        RunOutcome: "started" | "duplicate" | "refused" | "skipped" | "missed" | "queued" | "delivered" | "failed";
        /** @description The result of a run: an execution, or a prompt for the orchestrator. */
        RunResult: components["schemas"]["Started"] | components["schemas"]["AcceptedPrompt"];
        /** @description Scenarios to run. */
        RunScenarios: {
            /** @description Definition as an object, or as text in YAML or JSON. Diagnostics of text have lines and columns. `GET /definition.schema.json` is its JSON Schema, and `GET /llms.txt?tag=language` explains it. */
            definition?: Record<string, unknown> | string;
            /** @description Only cases whose name contains this text. */
            only?: string | null;
            /** @description Definition as an object, or as text in YAML or JSON. Diagnostics of text have lines and columns. `GET /definition.schema.json` is its JSON Schema, and `GET /llms.txt?tag=language` explains it. */
            scenarios: Record<string, unknown> | string;
            /** @description A workflow whose definition every path in the scenarios means, instead of `definition`: its id or slug. */
            workflowId?: string | null;
        };
        /** @description The stored scenarios to run. */
        RunStored: {
            /** @description Definition as an object, or as text in YAML or JSON. Diagnostics of text have lines and columns. `GET /definition.schema.json` is its JSON Schema, and `GET /llms.txt?tag=language` explains it. */
            definition?: Record<string, unknown> | string;
            /** @description Only cases whose name contains this text. */
            only?: string | null;
        };
        /** @description Runtime options of an execution. */
        Runtime: {
            policy?: components["schemas"]["PolicyBody"] | null;
        };
        /** @description Runtime details of an execution (second specification, `RuntimeState`). */
        RuntimeState: {
            /**
             * Format: int32
             * @description Number of attempts with external effects.
             */
            callCount: number;
            /** @description Time of the timeout, RFC 3339; null without a timeout, or while its clock is stopped. */
            deadlineAt?: string | null;
            /** @description Dispatch of the execution. */
            executor: components["schemas"]["ExecutorState"];
            /** @description Time of the next timer, RFC 3339; null if there is none. */
            nextTimerAt?: string | null;
            /** @description Steps with an open attempt. */
            openSteps: string[];
            policy?: components["schemas"]["PolicyState"] | null;
            /**
             * Format: int32
             * @description Number of started steps, containers and nested steps included.
             */
            stepCount: number;
            /** @description Steps that wait for an approval, a time, a signal or their next attempt. */
            waitingSteps: string[];
        };
        /** @description The scenarios of a workflow. They replace those before. */
        SaveScenarios: {
            /**
             * @description 1 to 20 texts in YAML or JSON, by name, together at most 512 KiB. A `definition` that is a path means the
             *     definition of the workflow.
             */
            files: {
                [key: string]: string;
            };
        };
        /** @description A saved workflow. */
        SavedBody: components["schemas"]["WorkflowBody"] & {
            /**
             * @description Warnings: `{severity, code, path, line, column, message, help, fix}`. They include approvers of the workflow and its
             *     subworkflows who currently cannot decide.
             */
            warnings: Record<string, unknown>[];
        };
        /** @description Saved scenarios with their results for the present definition. */
        SavedScenarios: components["schemas"]["ScenariosBody"] & {
            results: components["schemas"]["ScenarioResults"];
        };
        /** @description Numbers and violations of cases. */
        ScenarioResults: {
            /** @description Cases in the order of the files. */
            cases: components["schemas"]["CaseResult"][];
            /** @description Number of the other cases. */
            failed: number;
            /** @description True if all cases hold. */
            ok: boolean;
            /** @description Number of cases that hold. */
            passed: number;
        };
        /** @description The scenarios of a workflow. */
        ScenariosBody: {
            /** @description Texts by name. */
            files: {
                [key: string]: string;
            };
            /** @description Hash over all texts: `sha256:…`. The `reviewHash` of proposals covers it. */
            hash: string;
            /** @description Time of the last change, RFC 3339. */
            updatedAt: string;
            /** @description Id of the member who saved them. */
            updatedBy: string;
            /** @description Workflow, as in `/api/workflows/{id}`. */
            workflowId: string;
        };
        /** @description The scenarios of a workflow to replace or to remove. */
        ScenariosPart: {
            /** @description `hash` of the scenarios when the client compared them; null if there were none. */
            compared?: string | null;
            /** @description Texts by name; null to remove the scenarios. */
            files?: {
                [key: string]: string;
            } | null;
        };
        /** @description A secret without its value. */
        SecretBody: {
            /** @description Time of creation, RFC 3339. */
            createdAt: string;
            /** @description Name, as in `{secret: NAME}`. */
            name: string;
            /** @description Id of the member who set it last. */
            setBy: string;
            /** @description Time of the last change, RFC 3339. */
            updatedAt: string;
            /** @description Ids of the workflows that may use it; null for all workflows. */
            workflows?: string[] | null;
        };
        /** @description Fields of the request that replaces the secret. */
        SecretRotation: {
            /** @description True if the secret is replaced although the previous one is valid, which ends its validity. Default false. */
            force?: boolean;
        };
        /** @description A page of secrets. */
        Secrets: {
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
            /** @description Secrets in the order of their names. */
            secrets: components["schemas"]["SecretBody"][];
        };
        /** @description A browser session. */
        Session: {
            /** @description Expiration time of the cookie, RFC 3339. */
            expiresAt: string;
            /** @description Organization that the session belongs to. */
            organizationId: string;
            /** @description Id of the member. */
            userId: string;
        };
        /** @description A budget to set. At least one quantity is limited. */
        SetBudget: {
            /**
             * Format: double
             * @description Cost in the currency of `prices`.
             */
            cost?: number | null;
            /**
             * Format: int64
             * @description Requests to models.
             */
            modelCalls?: number | null;
            /** @description `fail` (default) or `ask`. */
            onExceeded?: string | null;
            /** @description `day` or `month`, in UTC. */
            period: string;
            /**
             * Format: int64
             * @description Milliseconds that these calls take, each counted by itself.
             */
            timeMs?: number | null;
            /**
             * Format: int64
             * @description Tokens of requests and answers.
             */
            tokens?: number | null;
            /**
             * Format: int64
             * @description Calls of tools by agents.
             */
            toolCalls?: number | null;
            /**
             * Format: int32
             * @description The percentage of a limit at which watchers get the event `budget.warning`; default 80.
             */
            warnPercent?: number | null;
            /** @description Id or slug of the workflow; null for the whole organization. */
            workflow?: string | null;
        };
        /** @description The rules of the organization. They replace the previous ones. */
        SetCallPolicy: {
            /**
             * @description `allow`, `ask` or `deny` by class (`read`, `model`, `write`, `execute`, `message`, `payment`, `destructive`) or by
             *     pattern of names, as `github.delete_*`.
             */
            verdicts: {
                [key: string]: string;
            };
        };
        /** @description The value of a secret, and the workflows that may use it. */
        SetSecret: {
            /** @description The value: 8 bytes to 32 KiB of text. */
            value: string;
            /** @description Ids or slugs of the workflows that may use it; null for all workflows of the organization. */
            workflows?: string[] | null;
        };
        /** @description The last shadow run of a proposal. */
        ShadowBody: {
            /** @description Time, RFC 3339. */
            at: string;
            /** @description Id of the member who ran it. */
            by: string;
            /** @description Hash of the report. The `reviewHash` of the proposal covers it. */
            hash: string;
            /** @description `{proposedHash, counts, executions}`. */
            report: Record<string, unknown>;
        };
        /** @description The executions of a shadow run: the last ended ones, chosen so that every branch occurs, or those named. */
        ShadowRequest: {
            /** @description Ids of executions of the workflow, instead of `last`. */
            executionIds?: string[] | null;
            /** @description Number of ended executions, 1 to 50; default 20. */
            last?: number | null;
        };
        /** @description Figures of the newest 5,000 executions of one side since the rollout began. */
        SideFigures: {
            /**
             * Format: int64
             * @description Executions that were canceled otherwise.
             */
            cancelled: number;
            /**
             * Format: int64
             * @description Executions that completed.
             */
            completed: number;
            /**
             * Format: double
             * @description Mean cost of ended executions, in units of the currency; null if there are none.
             */
            costMean?: number | null;
            /**
             * Format: double
             * @description Cost of all of them.
             */
            costTotal: number;
            /**
             * Format: int64
             * @description Median duration of completed executions in milliseconds; null if there are none.
             */
            durationP50Ms?: number | null;
            /**
             * Format: int64
             * @description 95th percentile of these durations.
             */
            durationP95Ms?: number | null;
            /**
             * Format: int64
             * @description Executions that failed, and those that were canceled since their parent failed or its step timed out.
             */
            failed: number;
            /**
             * Format: double
             * @description Percentage of failed executions and refused starts among these and completed executions; null if there are none.
             */
            failureRatePercent?: number | null;
            /**
             * Format: int64
             * @description Executions of the candidate that have been unfinished for longer than the slowest completed one of the stable
             *     definition took; 0 for the stable definition.
             */
            overdue: number;
            /**
             * Format: int64
             * @description Starts, each counted once, that the candidate refused and the stable definition would have accepted. They have no
             *     execution.
             */
            refused: number;
            /**
             * Format: int64
             * @description Root executions whose trees have an execution that completed or failed, and refused starts, counted up to `minimum`
             *     of the plan.
             */
            roots: number;
            /**
             * Format: int64
             * @description Executions that started.
             */
            starts: number;
            /** @description True if there are more than were read. */
            startsMore: boolean;
            /**
             * Format: double
             * @description Mean number of tokens of ended executions; null if there are none.
             */
            tokensMean?: number | null;
            /**
             * Format: int64
             * @description Tokens of all of them.
             */
            tokensTotal: number;
        };
        /** @description A named signal. */
        Signal: {
            /** @description Unique id of the signal. A repeated id has no second effect. */
            id: string;
            /** @description Name that a step waits for. */
            name: string;
            /** @description Payload: any JSON value, up to 256 KiB in binary form. */
            payload?: unknown;
        };
        /**
         * @description The hash of an HMAC.
         * @enum {string}
         */
        SignatureAlgorithm: "sha256" | "sha512";
        /** @description The way in which a sender signs deliveries. */
        SignatureConfig: {
            algorithm?: components["schemas"]["SignatureAlgorithm"] | null;
            /** @description `hmac`: the signed content, with `{body}` (default) and `{timestamp}`. */
            content?: string | null;
            encoding?: components["schemas"]["SignatureEncoding"] | null;
            /** @description `hmac` and `token`: the header with the signature or the secret. */
            header?: string | null;
            /** @description `hmac`: text before the signature, such as `sha256=`. */
            prefix?: string | null;
            /** @description The sender whose headers and signed content are expected. */
            scheme: components["schemas"]["SignatureScheme"];
            /** @description `hmac`: the header with the time of the signature, in seconds since 1970. */
            timestampHeader?: string | null;
            /**
             * Format: int64
             * @description Largest distance between the time of a signature and now, in milliseconds; default 300,000.
             */
            toleranceMs?: number | null;
        };
        /**
         * @description The form of a signature.
         * @enum {string}
         */
        SignatureEncoding: "hex" | "base64";
        /**
         * @description The headers and the signed content of a kind of sender.
         * @enum {string}
         */
        SignatureScheme: "standard_webhooks" | "github" | "gitlab" | "stripe" | "slack" | "hmac" | "token";
        /**
         * @description Origin of a version (second specification, `workflow_version_history`).
         * @enum {string}
         */
        Source: "sync" | "update" | "proposal_apply" | "rollback" | "rollout_promote" | "system";
        /** @description A started execution: its result envelope so far. */
        Started: components["schemas"]["Waited"] & {
            /**
             * @description In a repeat, the parts of the request that differ from those of the first one, which count: `input`,
             *     `variables.NAME`. Empty for credentials without `executions:read`.
             */
            differs: string[];
            /** @description Error: `{code, class, message, details, stepId}`; null if the execution has not ended or nothing failed. */
            error?: Record<string, unknown> | null;
            /** @description Execution, as in `/api/executions/{id}`. */
            executionId: string;
            /** @description True if an earlier request with the same id started the execution. */
            existed: boolean;
            /** @description False if the execution was started by an earlier request and has failed. */
            ok: boolean;
            /**
             * @description Output, or the output variables so far. Null if there is none, and for credentials without `executions:read`;
             *     the same holds for `requiresApproval` and `error`.
             */
            output: unknown;
            /** @description First open approval, with `resumeToken` for callers who may decide; null if none is open. */
            requiresApproval?: Record<string, unknown> | null;
            /**
             * @description Status of the execution. With `wait` the status of the envelope: `ok`, `needs_approval`, `cancelled`, `failed`,
             *     or `running` if the execution was still pending (see `waitingFor`) or running after the timeout.
             */
            status: string;
            /**
             * @description Variables of the start; for a repeated request, those of the first one. Null if they were erased, and in the
             *     response to a repeated request by a credential without `executions:read`.
             */
            variables?: Record<string, unknown> | null;
            /**
             * @description Warnings: `{severity, code, path, line, column, message, help, fix}`. They name approvers of the workflow and its
             *     subworkflows who currently cannot decide. Empty if an earlier request started the execution.
             */
            warnings: Record<string, unknown>[];
            /** @description Hash of the definition at the start: `sha256:…`. */
            workflowHash: string;
            /** @description Workflow, as in `/api/workflows/{id}`. */
            workflowId?: string | null;
        };
        /** @description A reason for which an execution stays with its definition. */
        StayReason: {
            /** @description Code of the reason, such as `step_missing`. */
            code: string;
            /** @description A sentence for people. */
            message: string;
            /** @description Name of the step instance; null if the reason is about the whole execution. */
            stepId?: string | null;
        };
        /** @description Attempts of an execution in the order of their start. */
        Steps: {
            /** @description Execution, as in `/api/executions/{id}`. */
            executionId: string;
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
            /** @description Attempts in the order of their start. */
            steps: components["schemas"]["Attempt"][];
        };
        /** @description Reason why the server has stopped a trigger. */
        StoppedBody: {
            /** @description Time, RFC 3339. */
            at: string;
            /** @description Error code. */
            code: string;
            /** @description Reason and remedy. */
            message: string;
        };
        /** @description A subscription to events. */
        SubscriptionBody: components["schemas"]["SubscriptionDeliveries"] & {
            /** @description Time of creation, RFC 3339. */
            createdAt: string;
            /** @description Id of the member who created it. */
            createdBy: string;
            /** @description True if events are sent. */
            enabled: boolean;
            /** @description Id, unique in the installation. */
            id: string;
            /** @description Display name. */
            name: string;
            /** @description Deliveries are also signed with the previous secret until this time, RFC 3339. */
            previousSecretUntil?: string | null;
            /** @description The secret of signatures. Only in the responses to its creation and rotation. */
            secret?: string | null;
            /** @description Types of events and prefixes. */
            types: string[];
            /** @description Time of the last change, RFC 3339. */
            updatedAt: string;
            /** @description Address of the endpoint. */
            url: string;
            /** @description Ids of the workflows; null for all executions of the organization. */
            workflows?: string[] | null;
        };
        /** @description The queue of a subscription, and its failures. */
        SubscriptionDeliveries: {
            /**
             * Format: int32
             * @description Failed attempts since the last success.
             */
            failures: number;
            lastFailure?: components["schemas"]["LastFailureBody"] | null;
            /** @description Time since which events are not recorded because too many executions wait, RFC 3339; `enable` continues. */
            overflowedAt?: string | null;
            paused?: components["schemas"]["PausedBody"] | null;
            /** @description Executions with events that wait, up to 100,001. */
            waitingExecutions: number;
        };
        /** @description Fields of a subscription to change. Omitted fields keep their values, and null is refused except for `workflows`. */
        SubscriptionDraft: {
            /** @description True if events are sent. True also ends a pause and sends the events that wait; false drops them. */
            enabled?: boolean;
            /** @description Display name. */
            name?: string;
            /** @description Types of events. */
            types?: string[];
            /** @description Address of the endpoint. */
            url?: string;
            /** @description Ids or slugs of workflows; null for all executions of the organization. */
            workflows?: string[] | null;
        };
        /** @description A page of subscriptions. */
        Subscriptions: {
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
            /** @description Items in the order of their ids. */
            subscriptions: components["schemas"]["SubscriptionBody"][];
        };
        /** @description The complete set of a member's workflows. */
        SyncAll: {
            /**
             * @description Hashes of the workflows that the client has compared, by slug or id; null for one that was not there. The request
             *     fails if one has changed since, or if it would delete a workflow that is not listed.
             */
            expected?: {
                [key: string]: string | null;
            } | null;
            /** @description True if other workflows of the member are kept. */
            keepOthers?: boolean | null;
            organization?: components["schemas"]["OrganizationPart"] | null;
            /** @description Scenarios to replace and to remove, by slug or id of the workflow. They are read, and do not run. */
            scenarios?: {
                [key: string]: components["schemas"]["ScenariosPart"];
            };
            /** @description Triggers to create, to replace and to delete. Also requires `executions:start`. */
            triggers?: components["schemas"]["TriggerPart"][];
            /** @description The complete set. Other workflows of the member are deleted. */
            workflows: components["schemas"]["Whole"][];
        };
        /** @description Result of saving a complete set. */
        Synced: {
            /** @description Ids of the deleted workflows. */
            deleted: string[];
            /** @description Current state of the workflows, each with its warnings. */
            workflows: components["schemas"]["SavedBody"][];
        };
        /** @description Thresholds of a candidate. One at least is given. */
        Thresholds: {
            /**
             * Format: double
             * @description Largest ratio of the mean costs of ended executions.
             */
            maxCostRatio?: number;
            /**
             * Format: double
             * @description Largest ratio of the median durations of completed executions, above 0 and up to 1,000.
             */
            maxDurationP50Ratio?: number;
            /**
             * Format: double
             * @description Largest ratio of the 95th percentiles of these durations.
             */
            maxDurationP95Ratio?: number;
            /**
             * Format: double
             * @description Most percent of its executions that may fail, 0 to 100.
             */
            maxFailureRatePercent?: number;
            /**
             * Format: double
             * @description Most percentage points by which its failure rate may exceed that of the stable definition, 0 to 100.
             */
            maxFailureRatePointsOver?: number;
        };
        /** @description Times of a proposal. */
        Times: {
            /** @description Time of creation, RFC 3339. */
            createdAt: string;
            /** @description Time at which it expires, RFC 3339. */
            expiresAt: string;
            /** @description Time of the last change, RFC 3339. */
            updatedAt: string;
        };
        /** @description A credential without its token. */
        TokenBody: {
            /** @description Time of creation, RFC 3339. */
            createdAt: string;
            /** @description Expiration time, RFC 3339; null if the credential does not expire. */
            expiresAt?: string | null;
            /** @description Unique id. */
            id: string;
            /** @description Time of the last use, RFC 3339, up to a minute late. */
            lastUsedAt?: string | null;
            /** @description Id of the member who created it. */
            madeBy: string;
            /** @description Display name. */
            name: string;
            /** @description Permissions that the credential is restricted to; empty for all permissions of the member. */
            scopes: components["schemas"]["Permission"][];
            /** @description Id of the execution, for a credential of an execution's session; null otherwise. */
            sessionOf?: string | null;
            /** @description Id of the member. */
            userId: string;
        };
        /** @description A page of credentials. */
        Tokens: {
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
            /** @description Members in the order of their ids. */
            tokens: components["schemas"]["TokenBody"][];
        };
        /** @description A tool that a server lists. Its texts are the server's. */
        ToolBody: {
            /** @description The side-effect class. */
            class: string;
            /** @description The origin of the class, as a clause. */
            classSource: string;
            /** @description The server's description: `{name, title, description, inputSchema, outputSchema, annotations}`. */
            description: Record<string, unknown>;
            /** @description `sha256:…` of the description. */
            digest: string;
            /** @description Full name, `SERVER.TOOL`. */
            name: string;
            /** @description `allow`, `ask` or `deny` by the rules of the installation and the organization. */
            verdict: string;
        };
        /** @description A configured tool server. */
        ToolServerBody: {
            /** @description The origin of its address, or the file name of its program. */
            address: string;
            /** @description Name: the first part of the full names of its tools, `NAME.TOOL`. */
            name: string;
            /** @description `stdio` for a process, or `http`. */
            transport: string;
        };
        /** @description The result of a check of a tool server. */
        ToolServerCheck: {
            /**
             * Format: int64
             * @description Duration of the check in milliseconds.
             */
            durationMs: number;
            /** @description The failure, `{class, code, message}`; null if there is none. */
            error?: Record<string, unknown> | null;
            /** @description True if the server has listed its tools. */
            ok: boolean;
            /** @description Its tools in the order of their names. */
            tools: components["schemas"]["ToolBody"][];
        };
        /** @description The configured tool servers. */
        ToolServers: {
            /** @description The mistakes in their configuration, because of which no tool can be called; null without any. */
            error?: string | null;
            /** @description Tool servers in the order of their names. */
            toolServers: components["schemas"]["ToolServerBody"][];
        };
        /** @description Paths to the records of a session. */
        Transcript: {
            /** @description Events as a stream. */
            events: string;
            /** @description Frames of the journal. */
            journal: string;
            /** @description Attempts with inputs and outputs. */
            steps: string;
        };
        /** @description A trigger. */
        TriggerBody: components["schemas"]["TriggerRuns"] & {
            /** @description The source of its events, without secrets. */
            config: components["schemas"]["ConfigView"];
            /** @description Time of creation, RFC 3339. */
            createdAt: string;
            /** @description Id of the member who created it. */
            createdBy: string;
            /** @description True if events and ticks start executions. */
            enabled: boolean;
            /** @description Id, unique in the organization. */
            id: string;
            /** @description Display name. */
            name: string;
            repository?: components["schemas"]["RepositoryContext"] | null;
            /** @description `manual`, `webhook` or `schedule`. */
            type: string;
            /** @description Time of the last change, RFC 3339. */
            updatedAt: string;
            /** @description Id of the workflow's owner, as whom its executions run. For the target `orchestrator`, the member who created it. */
            userId: string;
            /** @description Paths into the event by the names of variables. */
            variableMapping: {
                [key: string]: string;
            };
            /**
             * @description In the response to a change, the warnings about it: secrets of a webhook with fewer than 16 bytes, and a workflow
             *     whose `inputSchema` requires an input. Otherwise empty.
             */
            warnings: string[];
            /** @description Address of the webhook; null for other types. */
            webhookUrl?: string | null;
            /** @description Workflow, as in `/api/workflows/{id}`; null for the target `orchestrator`. */
            workflowId?: string | null;
        };
        /** @description Fields of a trigger to change. Omitted fields keep their values. */
        TriggerDraft: {
            config?: components["schemas"]["ConfigBody"] | null;
            /** @description True if events and ticks start executions. */
            enabled?: boolean | null;
            /** @description Display name. */
            name?: string | null;
            repository?: components["schemas"]["RepositoryContext"] | null;
            /** @description Paths into the event by the names of variables; null for none. */
            variableMapping?: {
                [key: string]: string;
            } | null;
        };
        /** @description A trigger to create, to replace or to delete. */
        TriggerPart: {
            /** @description `updatedAt` of the trigger when the client compared it; required with `id`. */
            compared?: string | null;
            config?: components["schemas"]["ConfigBody"] | null;
            /** @description True to delete it. */
            delete?: boolean;
            /** @description True (default) if events and ticks start executions. */
            enabled?: boolean | null;
            /**
             * @description Id of the trigger to replace or to delete. A trigger without it is created, and fails if the member has one of this
             *     name.
             */
            id?: string | null;
            /** @description Display name. */
            name: string;
            /** @description Paths into the event by the names of variables. */
            variableMapping?: {
                [key: string]: string;
            };
            /**
             * @description Slug of the caller, or id of a workflow, also of one that this request saves. Absent for the target
             *     `orchestrator`, and ignored for a trigger with an id.
             */
            workflowId?: string | null;
        };
        /** @description Past and next runs of a trigger. */
        TriggerRuns: {
            /** @description Id of the last started execution. */
            lastExecutionId?: string | null;
            /** @description Time of the last started execution or accepted prompt, RFC 3339. */
            lastRunAt?: string | null;
            /** @description Next starts of an enabled schedule, RFC 3339; empty for other types. */
            nextRuns: string[];
            prompts?: components["schemas"]["PromptsBody"] | null;
            stopped?: components["schemas"]["StoppedBody"] | null;
        };
        /** @description A page of triggers. */
        Triggers: {
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
            /** @description Items in the order of their ids. */
            triggers: components["schemas"]["TriggerBody"][];
        };
        /** @description Settings to change. Omitted settings keep their values. */
        Update: {
            /**
             * @description Features by name: `workflow_runtime_v1` permits starts, `proposal_four_eyes` requires another member than the
             *     author to approve a proposal, `proposal_shadow` requires a shadow run before the approval.
             */
            features?: {
                [key: string]: boolean;
            } | null;
            limits?: components["schemas"]["LimitsUpdate"] | null;
            /** @description Display name. */
            name?: string | null;
        };
        /** @description Usage in one period. */
        UsageBody: {
            /** @description The day or month, as `2026-11-26` or `2026-11`. */
            period: string;
            /** @description The used amounts: `{tokens, cost, modelCalls, toolCalls, timeMs}`. */
            used: Record<string, unknown>;
            /** @description Id of the workflow; null for the whole organization. */
            workflow?: string | null;
            /** @description Name of the workflow; null for the whole organization, and for a deleted workflow. */
            workflowName?: string | null;
        };
        /** @description Usage of several periods or workflows. */
        UsagePage: {
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
            /** @description The newest period first, then by workflow. */
            usage: components["schemas"]["UsageBody"][];
        };
        /** @description The judgment of a rollout at its thresholds. */
        VerdictBody: {
            /** @description The reasons, a sentence each. */
            reasons: string[];
            /** @description `waits`, `exceeded` or `kept`. */
            status: string;
        };
        /** @description Result of verifying the audit log. */
        Verified: {
            /**
             * Format: int64
             * @description Number of verified entries.
             */
            entries: number;
            /** @description First defect with its position; null if there is none. */
            error?: string | null;
            /** @description True if the entries form an unbroken chain up to the sealed head. */
            ok: boolean;
        };
        /** @description A version of a workflow. */
        VersionBody: {
            /** @description Time, RFC 3339. */
            createdAt: string;
            /** @description Id of the member who created it. */
            createdBy: string;
            /** @description Unique id. */
            id: string;
            /** @description Release notes of the author. */
            notes?: string | null;
            /**
             * @description Returns of the workflow to this version, such as rollbacks, newest first. The history shows the newest 200 returns
             *     of a workflow, and the audit log has all.
             */
            returns: components["schemas"]["ReturnBody"][];
            /** @description Origin of the version. */
            source: components["schemas"]["Source"];
            /** @description Id of the proposal that created the version. */
            sourceProposalId?: string | null;
            /** @description The definition. */
            workflowData: Record<string, unknown>;
            /** @description Hash of the normalized definition: `sha256:…`. */
            workflowHash: string;
            /** @description Workflow, as in `/api/workflows/{id}`. */
            workflowId: string;
            /** @description Semantic version. */
            workflowVersion: string;
        };
        /** @description The fields of the response that are present only with `wait`. */
        Waited: {
            /** @description All open approvals, including those of child executions. */
            approvals?: Record<string, unknown>[];
            /** @description `with_failures` for a completed execution with tolerated failures; null otherwise. */
            outcome?: string;
            /** @description The first attempts, up to 8 MiB. */
            steps?: components["schemas"]["Attempt"][];
            /** @description `cursor` of `GET /api/executions/{id}/steps` for the remaining attempts. */
            stepsCursor?: string;
            /**
             * @description Reason why the execution is still pending: the concurrency limit of the `user`, the `organization` or the `workflow`,
             *     `draining`, or `admission`. Absent after the start.
             */
            waitingFor?: string;
        };
        /**
         * @description Treatment of the workflow's unfinished executions when a proposal is applied.
         * @enum {string}
         */
        WhileRunning: "pin" | "strict" | "drain" | "migrate";
        /** @description A complete workflow to save. Omitted fields are cleared, except `version`, `enabled` and `repository`. */
        Whole: {
            /** @description Definition as an object, or as text in YAML or JSON. Diagnostics of text have lines and columns. `GET /definition.schema.json` is its JSON Schema, and `GET /llms.txt?tag=language` explains it. */
            data: Record<string, unknown> | string;
            /** @description Purpose, as the author describes it. */
            description?: string | null;
            /** @description True if the workflow can be started; default: unchanged, or true for a new workflow. */
            enabled?: boolean | null;
            /** @description Id of the workflow; default: the workflow with this slug, or a new one. */
            id?: string | null;
            /** @description Display name; default: the slug, else the `name` of the definition, else the id. */
            name?: string | null;
            repository?: components["schemas"]["RepositoryContext"] | null;
            /** @description Human-readable id, unique among the member's workflows. */
            slug?: string | null;
            /** @description Tags for searches. */
            tags?: string[] | null;
            /**
             * @description Semantic version; default 1.0.0 for a new workflow, and an increment of the last part for a new definition. A
             *     definition that was saved before gets its former version again; a version never belongs to two definitions.
             */
            version?: string | null;
        };
        /** @description A workflow. */
        WorkflowBody: {
            /** @description Time of creation, RFC 3339. */
            createdAt: string;
            /** @description The definition. */
            data: Record<string, unknown>;
            /** @description Purpose, as the author describes it. */
            description?: string | null;
            draining?: components["schemas"]["DrainBody"] | null;
            /** @description True if the workflow can be started. */
            enabled: boolean;
            /** @description Id, unique in the organization. */
            id: string;
            /** @description Display name. */
            name: string;
            repository?: components["schemas"]["RepositoryContext"] | null;
            rollout?: components["schemas"]["ActiveRolloutBody"] | null;
            /** @description Human-readable id, unique among the member's workflows. */
            slug?: string | null;
            /** @description Tags for searches. */
            tags: string[];
            /** @description Time of the last change, RFC 3339. */
            updatedAt: string;
            /** @description Id of the owner. */
            userId: string;
            /** @description Semantic version. */
            version: string;
            /** @description Hash of the normalized definition: `sha256:…`. */
            workflowHash: string;
        };
        /** @description A page of workflows. */
        Workflows: {
            /** @description `cursor` of the next page; null for the last page. */
            nextCursor?: string | null;
            /** @description Members in the order of their ids. */
            workflows: components["schemas"]["WorkflowBody"][];
        };
        /** @description A change in words, which a language model turns into a definition. */
        WriteProposal: {
            /** @description `workflowHash` of the definition to change. If given, it must be the present one. */
            baseWorkflowHash?: string | null;
            /** @description The change in words. */
            intent: string;
            /** @description Name of a model in the settings of the server; default: the default model. */
            model?: string | null;
        };
        /** @description A change that a language model has written. */
        WrittenBody: {
            /**
             * Format: int64
             * @description Number of calls.
             */
            calls: number;
            /**
             * Format: int64
             * @description Tokens of the requests.
             */
            inputTokens: number;
            /** @description The change in words. */
            intent: string;
            /** @description The model, as its provider names it. */
            model: string;
            /**
             * Format: int64
             * @description Tokens of the answers.
             */
            outputTokens: number;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
