"""Why a call does not fit, and what nearby would."""
