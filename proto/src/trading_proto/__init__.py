"""The messages (`trading_pb2`) and the client stub (`trading_pb2_grpc`) of trading.TradingService."""
